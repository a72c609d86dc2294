package pglog

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/pools"
)

// store has the tables of the log, on connections of its own.
type store struct{ pool *pgxpool.Pool }

// maxConnections bounds the connections of a log: one appends, the others read.
const maxConnections = 4

// openStore connects. Statements of the log follow the primary key. Without statistics,
// which a table has only minutes after its first rows, PostgreSQL would collect and sort the
// rest of the partition for each read.
func openStore(ctx context.Context, d *db.DB) (store, error) {
	cfg := d.Pool().Config()
	for _, name := range []string{"enable_bitmapscan", "enable_seqscan"} {
		pools.SetDefault(cfg.ConnConfig.RuntimeParams, name, "off")
	}
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = maxConnections, 0, 0
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	return store{pool}, err
}

func (s store) close() {
	if s.pool != nil {
		s.pool.Close()
	}
}

// The advisory locks of transactions: of appends, which gives numbers in the order of
// the commits, and of the node that trims. Function log_append has the first, too.
const (
	appendLock = 5497853124
	trimLock   = 5497853125
)

// slots is the number of tables of segments.
const slots = 8

// segment is a table with records.
type segment struct {
	generation int64
	slot       int32
	bases      []int64 // by partition: the newest record before the segment
	began      time.Time
}

// head is the state of the log at a moment.
type head struct {
	generation int64 // of the newest segment
	trimmed    []int64
	ends       []int64 // by partition: the newest record
}

// syncs reports whether the server syncs its files.
func (s store) syncs(ctx context.Context) (on bool, err error) {
	err = s.pool.QueryRow(ctx, "SELECT current_setting('fsync')::BOOLEAN").Scan(&on)
	return on, err
}

// create makes the log with so many partitions, unless it exists, and returns its id and
// the number of partitions that it has.
func (s store) create(ctx context.Context, partitions int) (id string, actual int, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(trimLock)); err != nil {
			return err
		}
		zeros := make([]int64, partitions)
		if _, err := tx.Exec(ctx, "INSERT INTO log_store (one, id, partitions, trimmed) VALUES (1, $1, $2, $3) ON CONFLICT (one) DO NOTHING",
			"postgres/"+rand.Text(), partitions, zeros); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT id, partitions FROM log_store").Scan(&id, &actual); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO log_segments (generation, slot, bases, began_at)
			SELECT 1, 0, trimmed, clock_timestamp() FROM log_store WHERE NOT EXISTS (SELECT FROM log_segments)`)
		return err
	})
	return id, actual, err
}

// existing returns the id of the log, empty if there is none.
func (s store) existing(ctx context.Context) (id string, err error) {
	err = s.pool.QueryRow(ctx, "SELECT coalesce((SELECT id FROM log_store), '')").Scan(&id)
	return id, err
}

// append stores rows and returns the newest number of each partition that has got some.
// After an error they may be stored; a statement that was not sent, because a connection
// was lost before, is sent again.
func (s store) append(ctx context.Context, parts, records []int32, contents [][]byte) (ends map[int32]int64, err error) {
	var endParts []int32
	var endLast []int64
	for attempt := 0; ; attempt++ {
		err = s.pool.QueryRow(ctx, "SELECT ends_part, ends_last FROM log_append($1, $2, $3)", parts, records, contents).Scan(&endParts, &endLast)
		if err == nil || !pgconn.SafeToRetry(err) || attempt == maxConnections {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	ends = make(map[int32]int64, len(endParts))
	for i, p := range endParts {
		ends[p] = endLast[i]
	}
	return ends, nil
}

// headSQL reads the newest numbers from the newest segment.
const headSQL = `SELECT s.generation, l.trimmed, ARRAY(
		SELECT coalesce((SELECT b.last FROM log_batches b WHERE b.slot = s.slot AND b.part = p ORDER BY b.last DESC LIMIT 1), s.bases[p + 1])
		FROM generate_series(0, l.partitions - 1) AS p ORDER BY p)
	FROM log_store l, (SELECT generation, slot, bases FROM log_segments ORDER BY generation DESC LIMIT 1) s`

func (s store) head(ctx context.Context) (h head, err error) {
	err = s.pool.QueryRow(ctx, headSQL).Scan(&h.generation, &h.trimmed, &h.ends)
	return h, err
}

// segments returns the segments by age, the oldest first.
func (s store) segments(ctx context.Context) ([]segment, error) {
	rows, err := s.pool.Query(ctx, "SELECT generation, slot, bases, began_at FROM log_segments ORDER BY generation")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (g segment, err error) {
		return g, r.Scan(&g.generation, &g.slot, &g.bases, &g.began)
	})
}

// row is a stored row.
type row struct {
	last    int64
	records int32
	at      time.Time
	content []byte
}

const selectRows = `SELECT last, records, stored_at, content FROM (
		SELECT *, sum(octet_length(content)) OVER (ORDER BY last) - octet_length(content) AS before FROM (
			SELECT last, records, stored_at, content FROM log_batches
			WHERE slot = $1 AND part = $2 AND last > $3 ORDER BY last LIMIT 1000) AS next) AS sized
	WHERE before < $4 ORDER BY last`

// rows returns rows of a partition in a segment whose newest number is above after: the
// first, and those that follow it within maxBytes of content.
func (s store) rows(ctx context.Context, slot int32, partition int, after int64, maxBytes int) ([]row, error) {
	rows, err := s.pool.Query(ctx, selectRows, slot, partition, after, maxBytes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (o row, err error) {
		return o, r.Scan(&o.last, &o.records, &o.at, &o.content)
	})
}

// storedAt returns when the first record after a number was stored.
func (s store) storedAt(ctx context.Context, slot int32, partition int, after int64) (at time.Time, err error) {
	err = s.pool.QueryRow(ctx, "SELECT stored_at FROM log_batches WHERE slot = $1 AND part = $2 AND last > $3 ORDER BY last LIMIT 1",
		slot, partition, after).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return at, nil
	}
	return at, err
}

package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/health"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// outboxLock is the advisory lock of the node that inserts into ClickHouse or erases there.
const outboxLock = 0x67756964_6f6e_0093

// lastStored returns the last row that was given to an event.
func (s *Store) lastStored(ctx context.Context) (row int64, err error) {
	return row, s.db.Read(ctx).NewSelect().TableExpr("event_outbox_state").Column("last_row").Where("id = 1").Scan(ctx, &row)
}

// Last implements events.Backend.
func (s *Store) Last(ctx context.Context) (row int64, err error) {
	return row, s.db.Read(ctx).NewSelect().TableExpr("event_outbox_state").Column("inserted_row").Where("id = 1").Scan(ctx, &row)
}

// Checkpoint implements events.Backend.
func (s *Store) Checkpoint(ctx context.Context, projectID int64) (events.Checkpoint, error) {
	// The row first: a change between the two is then one that the row does not know.
	row, err := s.Last(ctx)
	if err != nil {
		return events.Checkpoint{}, err
	}
	cp, err := s.shared.Changes(ctx, projectID)
	cp.Row = row
	return cp, err
}

// knownInOutbox reads the window of uuids. It is raw because of its LATERAL join, which looks
// up each event by itself.
const knownInOutbox = `
	SELECT requested.place FROM unnest($1::BIGINT[], $2::UUID[]) WITH ORDINALITY AS requested (project_id, uuid, place)
	CROSS JOIN LATERAL (SELECT FROM event_outbox_uuids u WHERE u.project_id = requested.project_id AND u.uuid = requested.uuid LIMIT 1) u`

func split(ids []events.Identity) (projects []int64, uuids []uuid.UUID) {
	projects, uuids = make([]int64, len(ids)), make([]uuid.UUID, len(ids))
	for i, id := range ids {
		projects[i], uuids[i] = id.Project, id.UUID
	}
	return projects, uuids
}

func (s *Store) markInOutbox(ctx context.Context, ids []events.Identity, known []bool) error {
	projects, uuids := split(ids)
	return s.db.PgxConn(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, knownInOutbox, projects, uuids)
		if err != nil {
			return err
		}
		var place int
		_, err = pgx.ForEachRow(rows, []any{&place}, func() error { known[place-1] = true; return nil })
		return err
	})
}

// The statements of one batch. They are raw because they pass arrays, and number rows.
const (
	lockState = `SELECT last_row, (SELECT coalesce(sum(bytes), 0)::BIGINT FROM event_outbox) FROM event_outbox_state WHERE id = 1 FOR UPDATE`
	addUUIDs  = `INSERT INTO event_outbox_uuids (project_id, uuid, event_row)
		SELECT project_id, uuid, $3::BIGINT + place FROM unnest($1::BIGINT[], $2::UUID[]) WITH ORDINALITY AS new (project_id, uuid, place)
		ON CONFLICT (project_id, uuid) DO NOTHING RETURNING event_row`
	addBatch  = `INSERT INTO event_outbox (first_row, last_row, checked, bytes, content) VALUES ($1, $2, $3, $4, $5)`
	saveState = `UPDATE event_outbox_state SET last_row = $1 WHERE id = 1`
)

// lockRows returns the last row that was given to an event, and the bytes of the outbox. The
// lock lasts until the end of the transaction.
func (s *Store) lockRows(ctx context.Context) (last, bytes int64, err error) {
	err = s.db.PgxConn(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, lockState).Scan(&last, &bytes) })
	return last, bytes, err
}

// readFigures returns the size and the age of the outbox.
func (s *Store) readFigures(ctx context.Context) (o health.Outbox, err error) {
	return o, s.db.Read(ctx).NewRaw(`SELECT count(*), coalesce(sum(bytes), 0)::BIGINT, (SELECT last_row - inserted_row FROM event_outbox_state WHERE id = 1),
			greatest(coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0), 0)::DOUBLE PRECISION
		FROM event_outbox`).Scan(ctx, &o.Batches, &o.Bytes, &o.Events, &o.OldestSeconds)
}

// addUUIDs gives rows behind last to events, and returns those that another transaction has
// not stored meanwhile.
func (s *Store) addUUIDs(ctx context.Context, ids []events.Identity, last int64) (rows map[int64]bool, err error) {
	projects, uuids := split(ids)
	rows = make(map[int64]bool, len(ids))
	err = s.db.PgxConn(ctx, func(conn *pgx.Conn) error {
		found, err := conn.Query(ctx, addUUIDs, projects, uuids, last)
		if err != nil {
			return err
		}
		var row int64
		_, err = pgx.ForEachRow(found, []any{&row}, func() error { rows[row] = true; return nil })
		return err
	})
	return rows, err
}

func (s *Store) addBatch(ctx context.Context, b *batch) error {
	return s.db.PgxConn(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, addBatch, b.FirstRow, b.LastRow, b.Checked, len(b.Content), b.Content); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, saveState, b.LastRow)
		return err
	})
}

// batch is a row of event_outbox. Content is compressed; see wire.Pack.
type batch struct {
	FirstRow, LastRow int64
	Checked           bool
	Content           []byte
}

// tryLock takes the lock of the outbox until the end of the transaction in ctx; false if
// another node has it.
func (s *Store) tryLock(ctx context.Context) (ok bool, err error) {
	return ok, s.db.Write(ctx).NewRaw("SELECT pg_try_advisory_xact_lock(?)", int64(outboxLock)).Scan(ctx, &ok)
}

func (s *Store) lock(ctx context.Context) error {
	_, err := s.db.Write(ctx).NewRaw("SELECT pg_advisory_xact_lock(?)", int64(outboxLock)).Exec(ctx)
	return err
}

// state is the row of event_outbox_state without what the worker's transactions lock, and the
// rows of the last insertion.
type state struct {
	Drainer           string
	FirstRow, LastRow int64
}

func (s *Store) readState(ctx context.Context) (st state, err error) {
	return st, s.db.Write(ctx).NewSelect().TableExpr("event_outbox_state AS s, event_insertion AS i").Column("s.drainer", "i.first_row", "i.last_row").Where("s.id = 1 AND i.id = 1").Scan(ctx, &st)
}

func (s *Store) saveDrainer(ctx context.Context) error {
	_, err := s.db.Write(ctx).NewUpdate().TableExpr("event_outbox_state").Set("drainer = ?", s.drainer).Where("id = 1").Exec(ctx)
	return err
}

// maxInsertion is how many bytes of the outbox one insertion takes.
const maxInsertion = 8 << 20

// nextBatches returns the first rows of the outbox, about maxInsertion bytes.
func (s *Store) nextBatches(ctx context.Context) (out []batch, err error) {
	return out, s.db.Write(ctx).NewRaw(`SELECT first_row, last_row, checked, content FROM event_outbox WHERE last_row <= (
			SELECT max(last_row) FROM (SELECT last_row, sum(bytes) OVER (ORDER BY first_row) - bytes AS before FROM event_outbox ORDER BY first_row LIMIT 1000) AS n
			WHERE before < ?)
		ORDER BY first_row`, maxInsertion).Scan(ctx, &out)
}

// passed is a row up to which uuids may leave the window at a time.
type passed struct {
	row int64
	at  time.Time
}

// window is how long uuids stay after ClickHouse has them: longer than a transaction of the
// worker, which may have asked before.
const window = 2 * time.Minute

// removeBatches records that ClickHouse has the events up to last.
func (s *Store) removeBatches(ctx context.Context, last int64) error {
	w := s.db.Write(ctx)
	if _, err := w.NewDelete().TableExpr("event_outbox").Where("last_row <= ?", last).Exec(ctx); err != nil {
		return err
	}
	if _, err := w.NewUpdate().TableExpr("event_outbox_state").Set("inserted_row = ?", last).Where("id = 1").Exec(ctx); err != nil {
		return err
	}
	old := int64(0)
	for len(s.inserted) > 0 && time.Since(s.inserted[0].at) > window {
		old, s.inserted = s.inserted[0].row, s.inserted[1:]
	}
	if old == 0 {
		return nil
	}
	_, err := w.NewDelete().TableExpr("event_outbox_uuids").Where("event_row <= ?", old).Exec(ctx)
	return err
}

// cutBatch takes the events before left out of the batch that left begins in.
func (s *Store) cutBatch(ctx context.Context, list []batch, left []event) error {
	i := slices.IndexFunc(list, func(b batch) bool { return b.LastRow >= left[0].row })
	var plain []byte
	for n := 0; n < len(left) && left[n].row <= list[i].LastRow; n++ {
		plain = left[n].append(plain)
	}
	content := wire.Pack(plain)
	_, err := s.db.Write(ctx).NewUpdate().TableExpr("event_outbox").Set("first_row = ?, bytes = ?, content = ?", left[0].row, len(content), content).
		Where("first_row = ?", list[i].FirstRow).Exec(ctx)
	return err
}

// giveUp keeps an event that ClickHouse refuses. Its uuid is unknown from then on, so that a
// replay stores it.
func (s *Store) giveUp(ctx context.Context, e *event, reason error) error {
	r := e.record()
	ev := r.ToEvent()
	if err := s.shared.Refused(ctx, &ev, reason.Error()); err != nil {
		return fmt.Errorf("keep an event that ClickHouse refuses: %w", err)
	}
	_, err := s.db.Write(ctx).NewDelete().TableExpr("event_outbox_uuids").Where("event_row = ?", e.row).Exec(ctx)
	return err
}

func (s *Store) readStoreID(ctx context.Context) (id string, err error) {
	return id, s.db.Read(ctx).NewSelect().TableExpr("event_outbox_state").Column("store_id").Where("id = 1").Scan(ctx, &id)
}

// raiseRows makes the rows of later events larger than row. A transaction that has the lock of
// rows has given larger ones.
func (s *Store) raiseRows(ctx context.Context, row int64) error {
	_, err := s.db.Write(ctx).NewUpdate().TableExpr("event_outbox_state").Set("last_row = ?, inserted_row = ?", row, row).
		Where("id = 1 AND last_row < ?", row).Exec(ctx)
	return err
}

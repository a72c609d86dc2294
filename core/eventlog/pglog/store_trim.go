package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// trimmer is a transaction of the node that trims.
type trimmer struct{ tx pgx.Tx }

// asTrimmer calls fn in a transaction if no other node trims now.
func (s store) asTrimmer(ctx context.Context, fn func(t trimmer) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var alone bool
		err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1) FROM set_config('lock_timeout', '2s', true) AS a, set_config('idle_in_transaction_session_timeout', '10s', true) AS b",
			int64(trimLock)).Scan(&alone)
		if err != nil || !alone {
			return err
		}
		return fn(trimmer{tx})
	})
}

// rotate begins a segment in a free table. The transaction holds the lock of appends, so
// none is between the numbers that the segment begins with and the end.
func (t trimmer) rotate(ctx context.Context, slot int32) error {
	if _, err := t.tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(appendLock)); err != nil {
		return err
	}
	var h head
	if err := t.tx.QueryRow(ctx, headSQL).Scan(&h.generation, &h.trimmed, &h.ends); err != nil {
		return err
	}
	_, err := t.tx.Exec(ctx, "INSERT INTO log_segments (generation, slot, bases, began_at) VALUES ($1, $2, $3, clock_timestamp())", h.generation+1, slot, h.ends)
	return err
}

// setTrimmed records through which numbers the records are deleted.
func (t trimmer) setTrimmed(ctx context.Context, trimmed []int64) error {
	_, err := t.tx.Exec(ctx, "UPDATE log_store SET trimmed = $1", trimmed)
	return err
}

// empty removes a segment with its rows.
func (t trimmer) empty(ctx context.Context, g segment) error {
	if _, err := t.tx.Exec(ctx, "SET LOCAL lock_timeout = '100ms'"); err != nil { // readers of all tables wait behind this
		return err
	}
	if _, err := t.tx.Exec(ctx, fmt.Sprintf("TRUNCATE log_batches_%d", g.slot)); err != nil {
		return err
	}
	_, err := t.tx.Exec(ctx, "DELETE FROM log_segments WHERE generation = $1", g.generation)
	return err
}

// size returns the bytes on disk of the table of a segment, with its index.
func (t trimmer) size(ctx context.Context, slot int32) (bytes int64, err error) {
	err = t.tx.QueryRow(ctx, "SELECT pg_total_relation_size(format('log_batches_%s', $1::INTEGER)::regclass)", slot).Scan(&bytes)
	return bytes, err
}

// isLockTimeout reports whether a statement gave up because of lock_timeout.
func isLockTimeout(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "55P03"
}

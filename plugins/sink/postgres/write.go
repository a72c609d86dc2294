package postgres

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/sdk"
)

// row is an event in the form of COPY: one value for each column.
type row []any

// Write inserts the events that are not in the table yet, in one transaction.
// When the database refuses what an event holds, the batch is parted until the
// events to blame are alone.
func (s *Sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	events, err := b.Events()
	if err != nil {
		return sdk.WriteResult{}, sdk.Permanent(err)
	}
	rows := make([]row, len(events))
	for i := range events {
		rows[i] = rowOf(&events[i], b.Records[i].UUID)
	}
	w := writing{sink: s}
	if err := w.write(ctx, rows, 0); err != nil {
		return sdk.WriteResult{}, classify(err)
	}
	result := b.Partial(w.failures...)
	result.Duplicates = uint32(len(rows) - len(w.failures) - w.inserted)
	return result, nil
}

// writing is one batch on its way.
type writing struct {
	sink     *Sink
	inserted int
	failures []sdk.Failure
}

// write inserts rows, of which the first has the given index in the batch.
func (w *writing) write(ctx context.Context, rows []row, first int) error {
	if len(rows) == 0 {
		return nil
	}
	var n int64
	err := pgx.BeginFunc(ctx, w.sink.pool, func(tx pgx.Tx) (err error) {
		n, err = w.sink.insert(ctx, tx, rows)
		return err
	})
	switch {
	case err == nil:
		w.inserted += int(n)
		return nil
	case !blamesRow(err):
		return err
	case len(rows) == 1:
		w.failures = append(w.failures, sdk.Failure{Index: first, Err: sdk.AsError(classify(err))})
		return nil
	}
	half := len(rows) / 2
	if err := w.write(ctx, rows[:half], first); err != nil {
		return err
	}
	return w.write(ctx, rows[half:], first+half)
}

// arriving is the temporary table that a batch is copied into: made once a
// connection, empty after each transaction. Its number changes with columns.
const arriving = "guidon_arriving_1"

// insert copies rows and inserts those that are new, in an order that keeps
// two batches with the same events from waiting for each other.
func (s *Sink) insert(ctx context.Context, tx pgx.Tx, rows []row) (inserted int64, err error) {
	list := strings.Join(names(), ", ")
	_, err = tx.Exec(ctx, "CREATE TEMPORARY TABLE IF NOT EXISTS "+arriving+" ON COMMIT DELETE ROWS AS SELECT "+list+" FROM "+s.table()+" LIMIT 0")
	if err != nil {
		return 0, err
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{arriving}, names(), pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return rows[i], nil }))
	if err != nil {
		return 0, err
	}
	done, err := tx.Exec(ctx, "INSERT INTO "+s.table()+" ("+list+") SELECT "+list+" FROM "+arriving+
		" ORDER BY project_id, uuid ON CONFLICT DO NOTHING")
	return done.RowsAffected(), err
}

// rowOf is an event in the order of columns.
func rowOf(ev *sdk.Event, id [16]byte) row {
	var chain, person any
	if ev.ElementsChain != "" {
		chain = storable(ev.ElementsChain)
	}
	if p, err := uuid.Parse(ev.PersonID); err == nil {
		person = [16]byte(p)
	}
	return row{
		ev.ProjectID, id, storable(ev.Name), storable(ev.DistinctID), ev.Timestamp.UTC().Truncate(time.Microsecond),
		ev.ReceivedAt.UTC().Truncate(time.Microsecond), storableJSON(ev.Properties), chain, person,
	}
}

// storable replaces what a text of PostgreSQL cannot hold.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// storableJSON replaces the one escape that jsonb refuses. A backslash that is
// escaped itself begins none.
func storableJSON(raw []byte) []byte {
	nul := []byte(`\u0000`)
	if !bytes.Contains(raw, nul) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch {
		case bytes.HasPrefix(raw[i:], nul):
			out = append(out, `\ufffd`...)
			i += len(nul) - 1
		case raw[i] == '\\' && i+1 < len(raw):
			out = append(out, raw[i], raw[i+1])
			i++
		default:
			out = append(out, raw[i])
		}
	}
	return out
}

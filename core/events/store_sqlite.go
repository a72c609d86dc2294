package events

import (
	"context"

	"github.com/guidonhq/guidon/core/db"
)

// writerSQLite runs one prepared statement per row: this is as fast as many rows
// per statement, and reports which rows are new.
type writerSQLite struct{ db *db.DB }

// sqliteInsert is raw because the capture path prepares it once per batch.
const sqliteInsert = `
	INSERT INTO events (project_id, uuid, event, distinct_id, person_uuid, timestamp, received_at,
		current_url, flag_key, flag_response, elements_chain, properties)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (project_id, uuid) DO NOTHING`

func (w *writerSQLite) Insert(ctx context.Context, list []Insertion) ([]bool, error) {
	tx := txOf(ctx, w.db)
	if tx == nil {
		return nil, errNoTransaction
	}
	stmt, err := tx.PrepareContext(ctx, sqliteInsert)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	// A cancellable context costs a goroutine per statement. When ctx ends, the
	// transaction is rolled back and the next statement fails.
	ctx = context.WithoutCancel(ctx)
	fresh := make([]bool, len(list))
	for i := range list {
		r := &list[i]
		var person any
		if r.HasPerson {
			person = r.Person[:]
		}
		res, err := stmt.ExecContext(ctx, r.Event.ProjectID, r.UUID[:], r.Event.Name, r.Event.DistinctID, person,
			r.Event.Timestamp.UnixMicro(), r.Event.ReceivedAt.UnixMicro(), nullable(r.Columns.CurrentURL),
			nullable(r.Columns.FlagKey), nullable(r.Columns.FlagResponse), nullable(r.Event.ElementsChain), r.storedProperties())
		if err != nil {
			return nil, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return nil, err
		}
		fresh[i] = n > 0
	}
	return fresh, nil
}

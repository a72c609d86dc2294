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

func (w *writerSQLite) insert(ctx context.Context, list []row) ([]bool, error) {
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
		if r.hasPerson {
			person = r.person[:]
		}
		res, err := stmt.ExecContext(ctx, r.ev.ProjectID, r.uuid[:], r.ev.Name, r.ev.DistinctID, person,
			r.ev.Timestamp.UnixMicro(), r.ev.ReceivedAt.UnixMicro(), nullable(r.columns.currentURL),
			nullable(r.columns.flagKey), nullable(r.columns.flagResponse), nullable(r.ev.ElementsChain), r.storedProperties())
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

package events

import (
	"context"

	"github.com/guidonhq/guidon/core/db"
)

// writerSQLite runs one prepared statement a row: it is as fast as many rows a
// statement, and tells which rows were new.
type writerSQLite struct{ db *db.DB }

const sqliteInsert = `
	INSERT INTO events (project_id, uuid, event, distinct_id, person_uuid, timestamp, received_at,
		current_url, host, pathname, flag_key, flag_response, elements_chain, properties)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (project_id, uuid) DO NOTHING`

func (w *writerSQLite) insert(ctx context.Context, list []row) ([]bool, error) {
	tx := txOf(ctx, w.db)
	if tx == nil {
		return nil, errOutside
	}
	stmt, err := tx.PrepareContext(ctx, sqliteInsert)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	// Watching ctx costs a goroutine a statement. When ctx ends the
	// transaction is rolled back, and the next statement fails.
	ctx = context.WithoutCancel(ctx)
	fresh := make([]bool, len(list))
	for i := range list {
		r := &list[i]
		var person any
		if r.hasPerson {
			person = r.person[:]
		}
		res, err := stmt.ExecContext(ctx, r.ev.ProjectID, r.uuid[:], r.ev.Name, r.ev.DistinctID, person,
			r.ev.Timestamp.UnixMicro(), r.ev.ReceivedAt.UnixMicro(), null(r.hot.currentURL), null(r.hot.host),
			null(r.hot.pathname), null(r.hot.flagKey), null(r.hot.flagResponse), null(r.ev.ElementsChain), r.properties)
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

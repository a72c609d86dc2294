package events

import (
	"context"
	"encoding/hex"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// sqliteKnown is raw because it joins a JSON array: a statement per event would
// cost five times as much.
const sqliteKnown = `
	SELECT requested.key FROM json_each(?) AS requested
	CROSS JOIN events AS e INDEXED BY events_uuid
		ON e.project_id = requested.value ->> 0 AND e.uuid = unhex(requested.value ->> 1)`

func (w *writerSQLite) Known(ctx context.Context, ids []Identity) ([]bool, error) {
	tx := txOf(ctx, w.db)
	if tx == nil {
		return nil, errNoTransaction
	}
	requested := make([]byte, 0, len(ids)*40)
	for i, id := range ids {
		if i > 0 {
			requested = append(requested, ',')
		}
		requested = append(requested, '[')
		requested = strconv.AppendInt(requested, id.Project, 10)
		requested = append(hex.AppendEncode(append(requested, ',', '"'), id.UUID[:]), '"', ']')
	}
	known := make([]bool, len(ids))
	rows, err := tx.QueryContext(ctx, sqliteKnown, "["+string(requested)+"]")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var place int
		if err := rows.Scan(&place); err != nil {
			return nil, err
		}
		known[place] = true
	}
	return known, rows.Err()
}

// pgKnown is raw because of its LATERAL join, which looks up each event by itself:
// with a plain join Postgres may plan a scan while the table is small and keep
// that plan.
const pgKnown = `
	SELECT requested.place FROM unnest($1::BIGINT[], $2::UUID[]) WITH ORDINALITY AS requested (project_id, uuid, place)
	CROSS JOIN LATERAL (SELECT FROM events e WHERE e.project_id = requested.project_id AND e.uuid = requested.uuid LIMIT 1) e`

func (w *writerPostgres) Known(ctx context.Context, ids []Identity) ([]bool, error) {
	if txOf(ctx, w.db) == nil {
		return nil, errNoTransaction
	}
	projects, uuids := make([]int64, len(ids)), make([]uuid.UUID, len(ids))
	for i, id := range ids {
		projects[i], uuids[i] = id.Project, id.UUID
	}
	known := make([]bool, len(ids))
	err := w.db.PgxConn(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, pgKnown, projects, uuids)
		if err != nil {
			return err
		}
		var place int
		_, err = pgx.ForEachRow(rows, []any{&place}, func() error {
			known[place-1] = true
			return nil
		})
		return err
	})
	return known, err
}

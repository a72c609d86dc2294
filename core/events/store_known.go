package events

import (
	"context"
	"encoding/hex"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// One query for all: a statement an event would cost five times as much.
const sqliteKnown = `
	SELECT asked.key FROM json_each(?) AS asked
	CROSS JOIN events AS e INDEXED BY events_uuid
		ON e.project_id = asked.value ->> 0 AND e.uuid = unhex(asked.value ->> 1)`

func (w *writerSQLite) known(ctx context.Context, ids []identity) ([]bool, error) {
	tx := txOf(ctx, w.db)
	if tx == nil {
		return nil, errOutside
	}
	asked := make([]byte, 0, len(ids)*40)
	for i, id := range ids {
		if i > 0 {
			asked = append(asked, ',')
		}
		asked = append(asked, '[')
		asked = strconv.AppendInt(asked, id.project, 10)
		asked = append(hex.AppendEncode(append(asked, ',', '"'), id.uuid[:]), '"', ']')
	}
	known := make([]bool, len(ids))
	rows, err := tx.QueryContext(ctx, sqliteKnown, "["+string(asked)+"]")
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

// Each event is looked up by itself: left alone, Postgres may plan a scan while
// the table is small and keep that plan.
const pgKnown = `
	SELECT asked.place FROM unnest($1::BIGINT[], $2::UUID[]) WITH ORDINALITY AS asked (project_id, uuid, place)
	CROSS JOIN LATERAL (SELECT FROM events e WHERE e.project_id = asked.project_id AND e.uuid = asked.uuid LIMIT 1) e`

func (w *writerPostgres) known(ctx context.Context, ids []identity) ([]bool, error) {
	if txOf(ctx, w.db) == nil {
		return nil, errOutside
	}
	projects, uuids := make([]int64, len(ids)), make([]uuid.UUID, len(ids))
	for i, id := range ids {
		projects[i], uuids[i] = id.project, id.uuid
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

package events

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func (w *writerSQLite) known(ctx context.Context, ids []identity) ([]bool, error) {
	tx := txOf(ctx, w.db)
	if tx == nil {
		return nil, errOutside
	}
	stmt, err := tx.PrepareContext(ctx, `SELECT 1 FROM events WHERE project_id = ? AND uuid = ?`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	known := make([]bool, len(ids))
	var one int
	for i := range ids {
		err := stmt.QueryRowContext(ctx, ids[i].project, ids[i].uuid[:]).Scan(&one)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		known[i] = err == nil
	}
	return known, nil
}

const pgKnown = `
	SELECT asked.place FROM unnest($1::BIGINT[], $2::UUID[]) WITH ORDINALITY AS asked (project_id, uuid, place)
	WHERE EXISTS (SELECT FROM events e WHERE e.project_id = asked.project_id AND e.uuid = asked.uuid)`

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

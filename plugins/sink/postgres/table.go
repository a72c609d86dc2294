package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/sdk"
)

// column is a column of the table. They are only ever added: one that came
// later has a default or takes null, so that older rows need nothing.
type column struct{ name, kind string }

// columns in the order in which rows are copied.
var columns = []column{
	{"project_id", "bigint NOT NULL"},
	{"uuid", "uuid NOT NULL"},
	{"event", "text NOT NULL"},
	{"distinct_id", "text NOT NULL"},
	{"timestamp", "timestamptz NOT NULL"},
	{"received_at", "timestamptz NOT NULL"},
	{"properties", "jsonb NOT NULL"},
	{"elements_chain", "text"},
	{"person_id", "uuid"},
}

func names() []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.name
	}
	return out
}

func (s *Sink) table() string { return pgx.Identifier{s.cfg.Schema, s.cfg.Table}.Sanitize() }

// prepare makes the table fit, or finds out that it does not.
func (s *Sink) prepare(ctx context.Context) error {
	missing, err := s.missing(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	if !s.cfg.Manage {
		return sdk.ConfigError("/table", fmt.Errorf("%s has no columns %s, and with manage off they are not made", s.table(), strings.Join(missing, ", ")))
	}
	return s.migrate(ctx)
}

// missing lists the columns that the table lacks.
func (s *Sink) missing(ctx context.Context) (missing []string, err error) {
	rows, err := s.pool.Query(ctx, `SELECT column_name::text FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2`,
		s.cfg.Schema, s.cfg.Table)
	if err != nil {
		return nil, err
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, name := range there {
		has[name] = true
	}
	for _, c := range columns {
		if !has[c.name] {
			missing = append(missing, c.name)
		}
	}
	return missing, nil
}

// migrate creates missing tables and columns. The lock keeps two nodes from doing it at
// once, which PostgreSQL answers with an error.
func (s *Sink) migrate(ctx context.Context) error {
	index := func(suffix string) string { return pgx.Identifier{s.cfg.Table + suffix}.Sanitize() }
	statements := []string{"CREATE TABLE IF NOT EXISTS " + s.table() + " (project_id bigint NOT NULL, uuid uuid NOT NULL, PRIMARY KEY (project_id, uuid))"}
	for _, c := range columns[2:] {
		statements = append(statements, "ALTER TABLE "+s.table()+" ADD COLUMN IF NOT EXISTS "+pgx.Identifier{c.name}.Sanitize()+" "+c.kind)
	}
	statements = append(statements,
		"CREATE INDEX IF NOT EXISTS "+index("_by_event")+" ON "+s.table()+" (project_id, event, timestamp)",
		"CREATE INDEX IF NOT EXISTS "+index("_by_person")+" ON "+s.table()+" (project_id, distinct_id, timestamp)")
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))", "guidon sink "+s.table()); err != nil {
			return err
		}
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

package events

import (
	"context"
	"strings"
)

// Plan is how the database answers Tally.
func (s *Service) Plan(ctx context.Context, a *Ask) (string, error) {
	explain := "EXPLAIN QUERY PLAN "
	if s.db.Postgres() {
		explain = "EXPLAIN "
	}
	var out []string
	for _, p := range s.parts(a) {
		q := p.from(s.db.Read(ctx), a).ColumnExpr("e.timestamp / 900000000, count(*)").GroupExpr("1")
		rows, err := s.db.Read(ctx).QueryContext(ctx, explain+q.String())
		if err != nil {
			return "", err
		}
		for rows.Next() {
			var line string
			var ignored any
			into := []any{&line}
			if !s.db.Postgres() {
				into = []any{&ignored, &ignored, &ignored, &line}
			}
			if err := rows.Scan(into...); err != nil {
				return "", err
			}
			out = append(out, strings.TrimSpace(line))
		}
		if err := rows.Close(); err != nil {
			return "", err
		}
	}
	return strings.Join(out, "\n"), nil
}

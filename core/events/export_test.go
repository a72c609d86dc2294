package events

import (
	"context"
	"strings"
)

// Plan returns the query plan of CountHistory.
func (s *Service) Plan(ctx context.Context, a *HistoryQuery) (string, error) {
	var out []string
	for _, p := range s.backend.(*sqlBackend).splitQuery(a) {
		q := p.selectEvents(s.db.Read(ctx), a).ColumnExpr("e.timestamp / 900000000, count(*)").GroupExpr("1")
		lines, err := s.explain(ctx, q.String())
		if err != nil {
			return "", err
		}
		out = append(out, lines...)
	}
	return strings.Join(out, "\n"), nil
}

func (s *Service) explain(ctx context.Context, query string) (out []string, err error) {
	explain := "EXPLAIN QUERY PLAN "
	if s.db.Postgres() {
		explain = "EXPLAIN "
	}
	rows, err := s.db.Read(ctx).QueryContext(ctx, explain+query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		var ignored any
		into := []any{&line}
		if !s.db.Postgres() {
			into = []any{&ignored, &ignored, &ignored, &line}
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out, rows.Err()
}

// SetScan makes a list with property filters read at most events of them, page at
// a time.
func (s *Service) SetScan(events, page int) { s.scan.events, s.scan.page = events, page }

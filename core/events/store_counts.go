package events

import (
	"context"

	"github.com/uptrace/bun"
)

// who is one text a person: persons where there are any, distinct ids that
// stand for themselves elsewhere.
const who = "coalesce('p' || d.person_id, 'd' || e.distinct_id)"

// counted are the events of q's name and time, with the ids of their persons.
func (s *Service) counted(ctx context.Context, q *Question) *bun.SelectQuery {
	return s.db.Read(ctx).NewSelect().TableExpr("events AS e").
		Join("LEFT JOIN person_distinct_ids AS d ON d.project_id = e.project_id AND d.distinct_id = e.distinct_id").
		Where("e.project_id = ?", q.ProjectID).Where("e.event = ?", q.Event).
		Where("e.timestamp >= ?", q.From.UnixMicro()).Where("e.timestamp < ?", q.To.UnixMicro())
}

func (s *Service) countByFlag(ctx context.Context, q *Question) ([]Count, error) {
	var rows []struct {
		Interval int64  `bun:"interval"`
		Value    string `bun:"value"`
		Events   int64  `bun:"events"`
		People   int64  `bun:"people"`
	}
	value := "''"
	if q.Breakdown != "" {
		value = "coalesce(e.flag_response, '')"
	}
	err := s.counted(ctx, q).Where("e.flag_key = ?", q.Value).
		ColumnExpr("(e.timestamp - ?) / ? AS interval", q.From.UnixMicro(), q.Interval.Microseconds()).
		ColumnExpr(value+" AS value").ColumnExpr("count(*) AS events").ColumnExpr("count(DISTINCT "+who+") AS people").
		GroupExpr("1, 2").Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	out := make([]Count, len(rows))
	for i, r := range rows {
		out[i] = Count{Start: q.start(r.Interval), Value: r.Value, Events: r.Events, People: r.People}
	}
	sortCounts(out)
	return out, nil
}

func (s *Service) countRead(ctx context.Context, q *Question) ([]Count, error) {
	rows, err := s.counted(ctx, q).ColumnExpr("e.timestamp, " + who + " AS who, e.properties").Rows(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	t := tally{q: q, cells: map[cell]*heads{}}
	var at int64
	var who, properties []byte
	for rows.Next() {
		if err := rows.Scan(&at, &who, &properties); err != nil {
			return nil, err
		}
		t.add(at, string(who), properties)
	}
	return t.counts(), rows.Err()
}

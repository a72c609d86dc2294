package events

import (
	"context"

	"github.com/uptrace/bun"
)

// personText is one text per person: the person, or the distinct id of events
// without one.
const personText = "coalesce('p' || d.person_id, 'd' || e.distinct_id)"

// selectCounted selects the events of q's name and time, with their persons.
func (s store) selectCounted(ctx context.Context, q *CountQuery) *bun.SelectQuery {
	return s.db.Read(ctx).NewSelect().TableExpr("events AS e").
		Join("LEFT JOIN person_distinct_ids AS d ON d.project_id = e.project_id AND d.distinct_id = e.distinct_id").
		Where("e.project_id = ?", q.ProjectID).Where("e.event = ?", q.Event).
		Where("e.timestamp >= ?", q.From.UnixMicro()).Where("e.timestamp < ?", q.To.UnixMicro())
}

func (s store) countByFlag(ctx context.Context, q *CountQuery) ([]Count, error) {
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
	err := s.selectCounted(ctx, q).Where("e.flag_key = ?", q.Value).
		ColumnExpr("(e.timestamp - ?) / ? AS interval", q.From.UnixMicro(), q.Interval.Microseconds()).
		ColumnExpr(value+" AS value").ColumnExpr("count(*) AS events").ColumnExpr("count(DISTINCT "+personText+") AS people").
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

// countByProperties reads the properties of every event.
func (s store) countByProperties(ctx context.Context, q *CountQuery) ([]Count, error) {
	rows, err := s.selectCounted(ctx, q).ColumnExpr("e.timestamp, " + personText + " AS person, e.distinct_id, e.current_url, e.properties").Rows(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	c := NewCounter(q)
	var at int64
	var person, distinctID, url, stored []byte
	decoder := s.dictionaries.NewDecoder()
	for rows.Next() {
		if err := rows.Scan(&at, &person, &distinctID, &url, &stored); err != nil {
			return nil, err
		}
		properties, err := decoder.Decode(ctx, stored, distinctID, url)
		if err != nil {
			return nil, err
		}
		c.Add(at, string(person), properties)
	}
	return c.Counts(), rows.Err()
}

func (s store) Counts(ctx context.Context, q *CountQuery) ([]Count, error) {
	if q.Indexed() {
		return s.countByFlag(ctx, q)
	}
	return s.countByProperties(ctx, q)
}

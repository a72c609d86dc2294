package events

import (
	"context"
	"time"
)

// who is one text a person: persons where there are any, distinct ids that
// stand for themselves elsewhere.
const who = "coalesce('p' || d.person_id, 'd' || e.distinct_id)"

func (s *Service) flagCalls(ctx context.Context, projectID int64, key string, from, to time.Time, interval time.Duration) ([]FlagCalls, error) {
	var rows []struct {
		Bucket   int64  `bun:"bucket"`
		Response string `bun:"response"`
		Calls    int64  `bun:"calls"`
		People   int64  `bun:"people"`
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("events AS e").
		ColumnExpr("(e.timestamp - ?) / ? AS bucket", from.UnixMicro(), interval.Microseconds()).
		ColumnExpr("coalesce(e.flag_response, '') AS response").
		ColumnExpr("count(*) AS calls").ColumnExpr("count(DISTINCT "+who+") AS people").
		Join("LEFT JOIN person_distinct_ids AS d ON d.project_id = e.project_id AND d.distinct_id = e.distinct_id").
		Where("e.project_id = ?", projectID).Where("e.flag_key = ?", key).
		Where("e.timestamp >= ?", from.UnixMicro()).Where("e.timestamp < ?", to.UnixMicro()).
		GroupExpr("1, 2").OrderExpr("1, 2").Scan(ctx, &rows)
	out := make([]FlagCalls, len(rows))
	for i, r := range rows {
		out[i] = FlagCalls{Start: from.Add(time.Duration(r.Bucket) * interval), Response: r.Response, Calls: r.Calls, People: r.People}
	}
	return out, err
}

func (s *Service) flagLastCalled(ctx context.Context, projectID int64, key string) (time.Time, error) {
	var at *int64
	err := s.db.Read(ctx).NewRaw("SELECT max(timestamp) FROM events WHERE project_id = ? AND flag_key = ?", projectID, key).
		Scan(ctx, &at)
	if err != nil || at == nil {
		return time.Time{}, err
	}
	return time.UnixMicro(*at).UTC(), nil
}

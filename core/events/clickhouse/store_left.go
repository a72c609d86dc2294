package clickhouse

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/events"
)

// The events that PostgreSQL has from before events.url was set. No query of the store reads
// them; Move copies them.

// lastLeft returns the last row of these events; 0 without any.
func (s *Store) lastLeft(ctx context.Context) (row int64, err error) {
	return row, s.db.Read(ctx).NewSelect().TableExpr("events").ColumnExpr("coalesce(max(id), 0)").Scan(ctx, &row)
}

// eraseLeft deletes those of distinct ids inside the transaction in ctx, so that a later Move
// does not bring them back. It returns the events whose rows are not in moved.
func (s *Store) eraseLeft(ctx context.Context, projectID int64, distinctIDs []string, moved map[int64]bool) (out []events.HistoryEvent, err error) {
	var rows []sourceRow
	err = s.db.Write(ctx).NewDelete().TableExpr("events").Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(distinctIDs)).
		Returning(`id, project_id, uuid, event, distinct_id, timestamp, received_at, coalesce(elements_chain, '') AS elements_chain, properties`).Scan(ctx, &rows)
	for i := range rows {
		r := &rows[i]
		if moved[r.ID] {
			continue
		}
		e := event{
			project: r.ProjectID, name: r.Event, at: r.Timestamp, row: r.ID, uuid: r.UUID, distinctID: r.DistinctID,
			received: r.ReceivedAt - r.Timestamp, chain: r.ElementsChain, properties: string(r.Properties),
		}
		out = append(out, e.history(&events.HistoryQuery{}))
	}
	return out, err
}

// expireChunk is how many events one statement of expireLeft deletes.
const expireChunk = 5000

// expireLeft deletes those that x selects.
func (s *Store) expireLeft(ctx context.Context, x events.Expiry) error {
	for {
		found := s.db.Write(ctx).NewSelect().TableExpr("events").Column("id").Where("project_id = ? AND timestamp < ?", x.ProjectID, x.Before.UnixMicro()).Limit(expireChunk)
		if x.Event != "" {
			found = found.Where("event = ?", x.Event)
		}
		res, err := s.db.Write(ctx).NewDelete().TableExpr("events").Where("id IN (?)", found).Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n < expireChunk {
			return err
		}
	}
}

package events

import (
	"context"
	"database/sql"
	"time"

	"github.com/uptrace/bun"
)

// expiredFrom is the table with the index of x. Without statistics SQLite may choose
// another one and read a whole history for each chunk.
func (s *store) expiredFrom(x Expiry) string {
	switch {
	case s.db.Postgres():
		return "events AS e"
	case x.Event != "":
		return "events AS e INDEXED BY events_by_name"
	}
	return "events AS e INDEXED BY events_newest"
}

func (x Expiry) where(q *bun.SelectQuery) *bun.SelectQuery {
	q = q.Where("e.project_id = ?", x.ProjectID).Where("e.timestamp < ?", x.Before.UnixMicro())
	if x.Event != "" {
		q = q.Where("e.event = ?", x.Event)
	}
	return q
}

func (s *store) CountExpired(ctx context.Context, x Expiry) (n int64, err error) {
	q := s.db.Read(ctx).NewSelect().TableExpr(s.expiredFrom(x)).ColumnExpr("count(*)")
	return n, x.where(q).Scan(ctx, &n)
}

func (s *store) DeleteExpired(ctx context.Context, x Expiry, limit int) (n int, err error) {
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		var ids []int64
		q := s.db.Write(ctx).NewSelect().TableExpr(s.expiredFrom(x)).ColumnExpr("e.id")
		if err := x.where(q).OrderExpr("e.timestamp").Limit(int64(limit)).Scan(ctx, &ids); err != nil || len(ids) == 0 {
			return err
		}
		n = len(ids)
		return s.deleteRows(ctx, ids)
	})
	return n, err
}

func (s *store) Oldest(ctx context.Context, projectID int64, event string, since time.Time) (time.Time, bool, error) {
	var at sql.NullInt64
	q := s.db.Read(ctx).NewSelect().TableExpr(s.expiredFrom(Expiry{Event: event})).ColumnExpr("min(e.timestamp)").
		Where("e.project_id = ?", projectID)
	if event != "" {
		q = q.Where("e.event = ?", event)
	}
	if !since.IsZero() {
		q = q.Where("e.timestamp >= ?", since.UnixMicro())
	}
	err := q.Scan(ctx, &at)
	return time.UnixMicro(at.Int64).UTC(), at.Valid, err
}

func (s *store) Projects(ctx context.Context) (out []int64, err error) {
	last := sql.NullInt64{Int64: allProjects}
	for {
		err := s.db.Read(ctx).NewSelect().TableExpr("events").ColumnExpr("min(project_id)").Where("project_id > ?", last.Int64).Scan(ctx, &last)
		if err != nil || !last.Valid {
			return out, err
		}
		out = append(out, last.Int64)
	}
}

func (s *store) Names(ctx context.Context, projectID int64) ([]string, error) {
	var out []string
	last := sql.NullString{}
	for {
		// min with a lower bound is one step into events_by_name.
		q := s.db.Read(ctx).NewSelect().TableExpr("events").ColumnExpr("min(event)").Where("project_id = ?", projectID)
		if last.Valid {
			q = q.Where("event > ?", last.String)
		}
		if err := q.Scan(ctx, &last); err != nil {
			return nil, err
		}
		if !last.Valid {
			return out, nil
		}
		out = append(out, last.String)
	}
}

package ingestion

import (
	"context"
	"fmt"
	"time"
)

// usageRow is what a project has sent in the period that began at Period.
type usageRow struct {
	ProjectID int64
	Period    int64 // seconds since 1970
	Events    int64
	Refused   int64
}

// addUsage adds the row's numbers to what the period has already.
func (s *store) addUsage(ctx context.Context, r *usageRow) error {
	_, err := s.db.Write(ctx).NewRaw(`
		INSERT INTO ingestion_usage (project_id, period, events, refused, updated_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (project_id, period) DO UPDATE SET events = ingestion_usage.events + excluded.events,
			refused = ingestion_usage.refused + excluded.refused, updated_at = excluded.updated_at`,
		r.ProjectID, r.Period, r.Events, r.Refused, time.Now().UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write what project %d has sent: %w", r.ProjectID, err)
	}
	return nil
}

// usage returns what every project has sent in a period.
func (s *store) usage(ctx context.Context, period int64) (rows []usageRow, err error) {
	err = s.db.Read(ctx).NewRaw("SELECT project_id, period, events, refused FROM ingestion_usage WHERE period = ?", period).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read what projects have sent: %w", err)
	}
	return rows, nil
}

// dropUsage removes periods that began before then.
func (s *store) dropUsage(ctx context.Context, then time.Time) error {
	if _, err := s.db.Write(ctx).NewRaw("DELETE FROM ingestion_usage WHERE period < ?", then.Unix()).Exec(ctx); err != nil {
		return fmt.Errorf("remove old usage: %w", err)
	}
	return nil
}

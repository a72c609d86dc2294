package capture

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// UsageStore keeps how many events projects have sent. Its methods work in the
// transaction of their context when there is one.
type UsageStore struct{ db *db.DB }

// NewUsageStore returns the usage in a database.
func NewUsageStore(d *db.DB) *UsageStore { return &UsageStore{d} }

// usageRow is the usage of a project in a period.
type usageRow struct {
	bun.BaseModel `bun:"table:ingestion_usage,alias:u"`

	ProjectID int64 `bun:",pk"`
	Period    int64 `bun:",pk"` // its beginning in seconds since 1970
	Events    int64
	Refused   int64
	UpdatedAt db.Time
}

// add adds the counts of r to those of its period.
func (s *UsageStore) add(ctx context.Context, r usageRow) error {
	r.UpdatedAt = db.Now()
	_, err := s.db.Write(ctx).NewInsert().Model(&r).On("CONFLICT (project_id, period) DO UPDATE").
		Set("events = u.events + EXCLUDED.events").Set("refused = u.refused + EXCLUDED.refused").
		Set("updated_at = EXCLUDED.updated_at").Returning("NULL").Exec(ctx)
	if err != nil {
		return fmt.Errorf("write the usage of project %d: %w", r.ProjectID, err)
	}
	return nil
}

// inPeriod returns the usage of every project in a period.
func (s *UsageStore) inPeriod(ctx context.Context, period int64) (rows []usageRow, err error) {
	if err = s.db.Read(ctx).NewSelect().Model(&rows).Where("period = ?", period).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the usage of projects: %w", err)
	}
	return rows, nil
}

// DeleteBefore deletes the usage of periods that began before then.
func (s *UsageStore) DeleteBefore(ctx context.Context, then time.Time) error {
	if _, err := s.db.Write(ctx).NewDelete().Model((*usageRow)(nil)).Where("period < ?", then.Unix()).Exec(ctx); err != nil {
		return fmt.Errorf("delete old usage: %w", err)
	}
	return nil
}

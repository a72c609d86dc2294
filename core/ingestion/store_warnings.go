package ingestion

import (
	"context"
	"fmt"
	"time"
)

// warningRow is a warning as it is kept: one row a type, key and hour.
type warningRow struct {
	ProjectID int64
	Type      string
	Key       string
	Hour      int64
	Dropped   bool
	Count     int64
	FirstAt   int64
	LastAt    int64
	EventUUID string
	Details   string
}

// addWarning adds the row's count to what the hour has already.
func (s *store) addWarning(ctx context.Context, w *warningRow) error {
	_, err := s.db.Write(ctx).NewRaw(`
		INSERT INTO ingestion_warnings (project_id, type, key, hour, dropped, count, first_at, last_at, event_uuid, details)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (project_id, type, key, hour) DO UPDATE SET count = ingestion_warnings.count + excluded.count,
			last_at = excluded.last_at, event_uuid = excluded.event_uuid, details = excluded.details`,
		w.ProjectID, w.Type, w.Key, w.Hour, w.Dropped, w.Count, w.FirstAt, w.LastAt, w.EventUUID, w.Details).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write warning %s: %w", w.Type, err)
	}
	return nil
}

// warnings lists the project's warnings, newest first, and counts them all. An
// empty kind is every kind.
func (s *store) warnings(ctx context.Context, projectID int64, kind string, limit, offset int) (rows []warningRow, count int, err error) {
	where, args := "project_id = ?", []any{projectID}
	if kind != "" {
		where, args = where+" AND type = ?", append(args, kind)
	}
	if err = s.db.Read(ctx).NewRaw("SELECT count(*) FROM ingestion_warnings WHERE "+where, args...).Scan(ctx, &count); err != nil {
		return nil, 0, fmt.Errorf("count warnings: %w", err)
	}
	err = s.db.Read(ctx).NewRaw(`
		SELECT project_id, type, key, hour, dropped, count, first_at, last_at, event_uuid, details
		FROM ingestion_warnings WHERE `+where+` ORDER BY last_at DESC, type, key LIMIT ? OFFSET ?`,
		append(args, limit, offset)...).Scan(ctx, &rows)
	if err != nil {
		return nil, 0, fmt.Errorf("list warnings: %w", err)
	}
	return rows, count, nil
}

// dropWarnings removes what was last seen before then.
func (s *store) dropWarnings(ctx context.Context, then time.Time) error {
	_, err := s.db.Write(ctx).NewRaw("DELETE FROM ingestion_warnings WHERE last_at < ?", then.UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove old warnings: %w", err)
	}
	return nil
}

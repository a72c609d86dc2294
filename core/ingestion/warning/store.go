package warning

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// Store keeps warnings, one row per project, type, key and hour. Its methods
// work in the transaction of their context when there is one.
type Store struct{ db *db.DB }

// NewStore returns the warnings of a database.
func NewStore(d *db.DB) *Store { return &Store{d} }

// row is a row of ingestion_warnings.
type row struct {
	bun.BaseModel `bun:"table:ingestion_warnings,alias:w"`

	ProjectID int64  `bun:",pk"`
	Type      string `bun:",pk"`
	Key       string `bun:",pk"`
	Hour      int64  `bun:",pk"` // since 1970
	Dropped   bool
	Count     int64
	FirstAt   db.Time
	LastAt    db.Time
	EventUUID string `bun:"event_uuid"`
	Details   string
}

// AddCount adds n cases of a warning, seen at that time.
func (s *Store) AddCount(ctx context.Context, w Warning, n int64, at time.Time) error {
	return s.add(ctx, newRow(w, n, at))
}

// add adds the count of r to the count of its hour.
func (s *Store) add(ctx context.Context, r *row) error {
	_, err := s.db.Write(ctx).NewInsert().Model(r).
		On("CONFLICT (project_id, type, key, hour) DO UPDATE").
		Set("count = w.count + EXCLUDED.count").Set("last_at = EXCLUDED.last_at").
		Set("event_uuid = EXCLUDED.event_uuid").Set("details = EXCLUDED.details").
		Returning("NULL").Exec(ctx)
	if err != nil {
		return fmt.Errorf("write warning %s: %w", r.Type, err)
	}
	return nil
}

// list returns a page of the project's warnings, newest first, and the number
// of all. An empty kind selects every type.
func (s *Store) list(ctx context.Context, projectID int64, kind string, limit, offset int) ([]row, int, error) {
	var rows []row
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ?", projectID)
	if kind != "" {
		q = q.Where("type = ?", kind)
	}
	count, err := q.Count(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("count warnings: %w", err)
	}
	if err := q.Order("last_at DESC", "type", "key").Limit(int64(limit)).Offset(int64(offset)).Scan(ctx); err != nil {
		return nil, 0, fmt.Errorf("list warnings: %w", err)
	}
	return rows, int(count), nil
}

// Erase removes the details of the warnings of a project that quote one of the
// texts as a JSON string, and the uuid of their event. The counts stay. It returns
// the number of changed warnings.
func (s *Store) Erase(ctx context.Context, projectID int64, texts []string) (int64, error) {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		data, err := json.Marshal(text)
		if err != nil {
			return 0, fmt.Errorf("erase warnings: %w", err)
		}
		quoted[i] = string(data)
	}
	var rows []row
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND details <> '{}'", projectID).Scan(ctx)
	if err != nil {
		return 0, fmt.Errorf("erase warnings: %w", err)
	}
	var n int64
	for i := range rows {
		r := &rows[i]
		if !slices.ContainsFunc(quoted, func(q string) bool { return strings.Contains(r.Details, q) }) {
			continue
		}
		_, err := s.db.Write(ctx).NewUpdate().Model(r).Set("details = '{}'").Set("event_uuid = ''").WherePK().
			Where("details = ?", r.Details).Exec(ctx)
		if err != nil {
			return n, fmt.Errorf("erase warnings: %w", err)
		}
		n++
	}
	return n, nil
}

// DeleteBefore deletes the warnings last seen before then.
func (s *Store) DeleteBefore(ctx context.Context, then time.Time) error {
	_, err := s.db.Write(ctx).NewDelete().Model((*row)(nil)).Where("last_at < ?", db.At(then)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("delete old warnings: %w", err)
	}
	return nil
}

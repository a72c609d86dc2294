package ingestion

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// LetterFilter says which dead letters of a project. Zero fields do not filter.
type LetterFilter struct {
	IDs        []int64
	Source     string
	Event      string
	EventUUID  string
	DistinctID string
	Code       string
	Search     string    // somewhere in the event or in the error, whatever the case
	After      time.Time // failed at or later
	Before     time.Time // failed earlier
}

// Everything reports whether the filter lets all dead letters through.
func (f LetterFilter) Everything() bool {
	return len(f.IDs) == 0 && f.Source+f.Event+f.EventUUID+f.DistinctID+f.Code+f.Search == "" && f.After.IsZero() && f.Before.IsZero()
}

func (f LetterFilter) where(projectID int64) (string, []any) {
	where, args := "project_id = ?", []any{projectID}
	add := func(ok bool, condition string, arg ...any) {
		if ok {
			where, args = where+" AND "+condition, append(args, arg...)
		}
	}
	add(len(f.IDs) > 0, "id IN (?)", bun.List(f.IDs))
	add(f.EventUUID != "", "event_uuid = ?", f.EventUUID)
	add(f.Source != "", "source = ?", f.Source)
	add(f.Event != "", "event = ?", f.Event)
	add(f.DistinctID != "", "distinct_id = ?", f.DistinctID)
	add(f.Code != "", "code = ?", f.Code)
	add(!f.After.IsZero(), "failed_at >= ?", f.After.UnixMicro())
	add(!f.Before.IsZero(), "failed_at < ?", f.Before.UnixMicro())
	like := "%" + likeText.Replace(f.Search) + "%" // the database folds both in the same way
	add(f.Search != "", `(LOWER(payload) LIKE LOWER(?) ESCAPE '!' OR LOWER(message) LIKE LOWER(?) ESCAPE '!' OR LOWER(code) LIKE LOWER(?) ESCAPE '!')`, like, like, like)
	return where, args
}

// likeText makes a text stand for itself in a pattern that escapes with !.
var likeText = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// countLetters counts dead letters by source.
func (s *store) countLetters(ctx context.Context, projectID int64, f LetterFilter) (map[string]int, error) {
	where, args := f.where(projectID)
	var rows []struct {
		Source string
		N      int
	}
	err := s.db.Read(ctx).NewRaw("SELECT source, count(*) AS n FROM dead_letters WHERE "+where+" GROUP BY source", args...).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count dead letters: %w", err)
	}
	out := make(map[string]int, len(rows))
	for _, r := range rows {
		out[r.Source] = r.N
	}
	return out, nil
}

// letterIDs lists the ids of dead letters after the given one, ascending.
func (s *store) letterIDs(ctx context.Context, projectID int64, f LetterFilter, after int64, limit int) ([]int64, error) {
	where, args := f.where(projectID)
	ids := []int64{}
	err := s.db.Read(ctx).NewRaw("SELECT id FROM dead_letters WHERE "+where+" AND id > ? ORDER BY id LIMIT ?",
		append(args, after, limit)...).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return ids, nil
}

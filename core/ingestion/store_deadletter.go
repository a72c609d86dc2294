package ingestion

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/fault"
)

type letterRow struct {
	ID         int64
	ProjectID  int64
	Source     string
	EventUUID  string
	Event      string
	DistinctID string
	ReceivedAt int64
	CreatedAt  int64
	FailedAt   int64
	Attempts   int64
	Class      string
	Code       string
	Message    string
	Seq        int64
	Payload    string
}

const letterColumns = `id, project_id, source, event_uuid, event, distinct_id, received_at, created_at, failed_at,
	attempts, class, code, message, seq, payload`

func (r *letterRow) letter() DeadLetter {
	return DeadLetter{
		ID: r.ID, ProjectID: r.ProjectID, Source: r.Source, EventUUID: r.EventUUID, Event: r.Event, DistinctID: r.DistinctID,
		ReceivedAt: time.UnixMicro(r.ReceivedAt).UTC(), CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
		FailedAt: time.UnixMicro(r.FailedAt).UTC(), Attempts: r.Attempts,
		Class: r.Class, Code: r.Code, Message: r.Message, Seq: uint64(r.Seq), Payload: json.RawMessage(r.Payload),
	}
}

// addLetter keeps a dead letter. One of the same source and event is replaced,
// and counted.
func (s *store) addLetter(ctx context.Context, l *DeadLetter) error {
	_, err := s.db.Write(ctx).NewRaw(`
		INSERT INTO dead_letters (project_id, source, event_uuid, event, distinct_id, received_at, created_at, failed_at,
			attempts, class, code, message, seq, payload)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (source, project_id, event_uuid) DO UPDATE SET attempts = dead_letters.attempts + excluded.attempts,
			failed_at = excluded.failed_at, class = excluded.class, code = excluded.code, message = excluded.message,
			seq = excluded.seq, payload = excluded.payload`,
		l.ProjectID, l.Source, l.EventUUID, l.Event, l.DistinctID, l.ReceivedAt.UnixMicro(), l.CreatedAt.UnixMicro(),
		l.FailedAt.UnixMicro(), l.Attempts, l.Class, l.Code, l.Message, int64(l.Seq), string(l.Payload)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("keep dead letter %s: %w", l.EventUUID, err)
	}
	return nil
}

// LetterFilter says which dead letters of a project. Zero fields do not filter.
type LetterFilter struct {
	IDs        []int64
	Source     string
	Event      string
	EventUUID  string
	DistinctID string
	Code       string
	After      time.Time // failed at or later
	Before     time.Time // failed earlier
}

func (f LetterFilter) where(projectID int64) (string, []any) {
	where, args := "project_id = ?", []any{projectID}
	add := func(ok bool, condition string, arg any) {
		if ok {
			where, args = where+" AND "+condition, append(args, arg)
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
	return where, args
}

// letters lists dead letters, newest first, and counts them all.
func (s *store) letters(ctx context.Context, projectID int64, f LetterFilter, limit, offset int) ([]DeadLetter, int, error) {
	where, args := f.where(projectID)
	var count int
	if err := s.db.Read(ctx).NewRaw("SELECT count(*) FROM dead_letters WHERE "+where, args...).Scan(ctx, &count); err != nil {
		return nil, 0, fmt.Errorf("count dead letters: %w", err)
	}
	var rows []letterRow
	err := s.db.Read(ctx).NewRaw("SELECT "+letterColumns+" FROM dead_letters WHERE "+where+" ORDER BY id DESC LIMIT ? OFFSET ?",
		append(args, limit, offset)...).Scan(ctx, &rows)
	if err != nil {
		return nil, 0, fmt.Errorf("list dead letters: %w", err)
	}
	out := make([]DeadLetter, len(rows))
	for i := range rows {
		out[i] = rows[i].letter()
	}
	return out, count, nil
}

var errNoLetter = fault.New(fault.NotFound, "not_found", "No such dead letter.")

// letter returns one dead letter, or NotFound.
func (s *store) letter(ctx context.Context, projectID, id int64) (DeadLetter, error) {
	var row letterRow
	err := s.db.Read(ctx).NewRaw("SELECT "+letterColumns+" FROM dead_letters WHERE project_id = ? AND id = ?", projectID, id).Scan(ctx, &row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return DeadLetter{}, errNoLetter
	case err != nil:
		return DeadLetter{}, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	return row.letter(), nil
}

// oldestLetters lists dead letters in the order they were set aside, those after
// the given id.
func (s *store) oldestLetters(ctx context.Context, projectID int64, f LetterFilter, after int64, limit int) ([]DeadLetter, error) {
	where, args := f.where(projectID)
	var rows []letterRow
	err := s.db.Read(ctx).NewRaw("SELECT "+letterColumns+" FROM dead_letters WHERE "+where+" AND id > ? ORDER BY id LIMIT ?",
		append(args, after, limit)...).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	out := make([]DeadLetter, len(rows))
	for i := range rows {
		out[i] = rows[i].letter()
	}
	return out, nil
}

// editLetter changes what would be replayed.
func (s *store) editLetter(ctx context.Context, l *DeadLetter) error {
	_, err := s.db.Write(ctx).NewRaw("UPDATE dead_letters SET event = ?, distinct_id = ?, payload = ? WHERE project_id = ? AND id = ?",
		l.Event, l.DistinctID, string(l.Payload), l.ProjectID, l.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("edit dead letter %d: %w", l.ID, err)
	}
	return nil
}

// dropLetter removes one dead letter, or fails with NotFound.
func (s *store) dropLetter(ctx context.Context, projectID, id int64) error {
	res, err := s.db.Write(ctx).NewRaw("DELETE FROM dead_letters WHERE project_id = ? AND id = ?", projectID, id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove dead letter %d: %w", id, err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		return errNoLetter
	}
	return nil
}

// dropLetters removes what last failed before then.
func (s *store) dropLetters(ctx context.Context, then time.Time) error {
	_, err := s.db.Write(ctx).NewRaw("DELETE FROM dead_letters WHERE failed_at < ?", then.UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove old dead letters: %w", err)
	}
	return nil
}

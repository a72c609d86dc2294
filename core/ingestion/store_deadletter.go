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

	ReplayRequestedAt sql.NullInt64
	ReplayWaiting     bool
	ReplayError       string
}

const letterColumns = `id, project_id, source, event_uuid, event, distinct_id, received_at, created_at, failed_at,
	attempts, class, code, message, seq, payload, replay_requested_at, replay_waiting, replay_error`

func (r *letterRow) letter() DeadLetter {
	l := DeadLetter{
		ID: r.ID, ProjectID: r.ProjectID, Source: r.Source, EventUUID: r.EventUUID, Event: r.Event, DistinctID: r.DistinctID,
		ReceivedAt: time.UnixMicro(r.ReceivedAt).UTC(), CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
		FailedAt: time.UnixMicro(r.FailedAt).UTC(), Attempts: r.Attempts,
		Class: r.Class, Code: r.Code, Message: r.Message, Seq: uint64(r.Seq), Payload: json.RawMessage(r.Payload),
		ReplayWaiting: r.ReplayWaiting, ReplayError: r.ReplayError,
	}
	if r.ReplayRequestedAt.Valid {
		at := time.UnixMicro(r.ReplayRequestedAt.Int64).UTC()
		l.ReplayRequestedAt = &at
	}
	return l
}

// addLetter keeps a dead letter. When there is one of the same source and event
// it is counted, with the new error; its payload, which may have been edited,
// stays.
func (s *store) addLetter(ctx context.Context, l *DeadLetter) error {
	_, err := s.db.Write(ctx).NewRaw(`
		INSERT INTO dead_letters (project_id, source, event_uuid, event, distinct_id, received_at, created_at, failed_at,
			attempts, class, code, message, seq, payload)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (source, project_id, event_uuid) DO UPDATE SET attempts = dead_letters.attempts + excluded.attempts,
			failed_at = excluded.failed_at, class = excluded.class, code = excluded.code, message = excluded.message,
			seq = excluded.seq`,
		l.ProjectID, l.Source, l.EventUUID, l.Event, l.DistinctID, l.ReceivedAt.UnixMicro(), l.CreatedAt.UnixMicro(),
		l.FailedAt.UnixMicro(), l.Attempts, l.Class, l.Code, l.Message, int64(l.Seq), string(l.Payload)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("keep dead letter %s: %w", l.EventUUID, err)
	}
	return nil
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

// editLetter changes the payload of l unless it is no longer old.
func (s *store) editLetter(ctx context.Context, l *DeadLetter, old json.RawMessage) error {
	n, err := s.affected(ctx, "edit a dead letter",
		"UPDATE dead_letters SET event = ?, distinct_id = ?, payload = ? WHERE project_id = ? AND id = ? AND payload = ?",
		l.Event, l.DistinctID, string(l.Payload), l.ProjectID, l.ID, string(old))
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "changed_meanwhile", "The dead letter was changed or sent meanwhile. Read it again.")
	}
	return err
}

// dropLetters removes dead letters of a project and returns how many there were.
func (s *store) dropLetters(ctx context.Context, projectID int64, ids ...int64) (int, error) {
	return s.affected(ctx, "remove dead letters", "DELETE FROM dead_letters WHERE project_id = ? AND id IN (?)", projectID, bun.List(ids))
}

// expireLetters removes at most limit of the dead letters that last failed
// before then, and returns how many. What is to be sent again stays.
func (s *store) expireLetters(ctx context.Context, then time.Time, limit int) (int, error) {
	return s.affected(ctx, "remove old dead letters", `DELETE FROM dead_letters WHERE id IN
		(SELECT id FROM dead_letters WHERE failed_at < ? AND NOT replay_waiting ORDER BY failed_at LIMIT ?)`, then.UnixMicro(), limit)
}

// affected runs a statement and returns how many rows it touched.
func (s *store) affected(ctx context.Context, what, query string, args ...any) (int, error) {
	res, err := s.db.Write(ctx).NewRaw(query, args...).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	n, err := res.RowsAffected()
	return int(n), err
}

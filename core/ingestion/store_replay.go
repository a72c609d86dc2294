package ingestion

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// requestReplay asks for dead letters to be sent again, those that are not
// waiting already, and returns how many.
func (s *store) requestReplay(ctx context.Context, projectID int64, ids []int64, at time.Time) (int, error) {
	return s.affected(ctx, "ask for a replay", `UPDATE dead_letters SET replay_requested_at = ?, replay_waiting = TRUE, replay_error = ''
		WHERE project_id = ? AND id IN (?) AND NOT replay_waiting`, at.UnixMicro(), projectID, bun.List(ids))
}

// replayOutcome counts what is left of the dead letters that were asked for at
// that moment, and lists the first failures.
func (s *store) replayOutcome(ctx context.Context, projectID int64, at time.Time, limit int) (waiting, failed int, list []ReplayFailure, err error) {
	const of = " FROM dead_letters WHERE project_id = ? AND replay_requested_at = ?"
	err = s.db.Read(ctx).NewRaw(`SELECT COALESCE(SUM(CASE WHEN replay_waiting THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CASE WHEN replay_waiting THEN 0 ELSE 1 END), 0)`+of, projectID, at.UnixMicro()).Scan(ctx, &waiting, &failed)
	list = []ReplayFailure{}
	if err == nil && failed > 0 {
		err = s.db.Read(ctx).NewRaw("SELECT id, replay_error AS error"+of+" AND NOT replay_waiting ORDER BY id LIMIT ?",
			projectID, at.UnixMicro(), limit).Scan(ctx, &list)
	}
	if err != nil {
		return 0, 0, nil, fmt.Errorf("look at a replay: %w", err)
	}
	return waiting, failed, list, nil
}

// waitingSource returns the first source after the given one of which dead
// letters wait to be sent again; empty when there is none.
func (s *store) waitingSource(ctx context.Context, after string) (string, error) {
	var source string
	err := s.db.Read(ctx).NewRaw("SELECT source FROM dead_letters WHERE replay_waiting AND source > ? ORDER BY source LIMIT 1", after).Scan(ctx, &source)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("look for replays: %w", err)
	}
	return source, nil
}

// nextReplay returns the oldest dead letter of a source that waits to be sent
// again; false when there is none.
func (s *store) nextReplay(ctx context.Context, source string) (DeadLetter, bool, error) {
	var row letterRow
	err := s.db.Read(ctx).NewRaw("SELECT "+letterColumns+" FROM dead_letters WHERE replay_waiting AND source = ? ORDER BY id LIMIT 1", source).Scan(ctx, &row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return DeadLetter{}, false, nil
	case err != nil:
		return DeadLetter{}, false, fmt.Errorf("read the next replay: %w", err)
	}
	return row.letter(), true, nil
}

// takeLetter removes a dead letter that still holds this payload; false when
// it does not, or is gone.
func (s *store) takeLetter(ctx context.Context, id int64, payload json.RawMessage) (bool, error) {
	n, err := s.affected(ctx, "remove a replayed dead letter", "DELETE FROM dead_letters WHERE id = ? AND payload = ?", id, string(payload))
	return n > 0, err
}

// endReplay keeps a dead letter whose replay was not possible, or no longer
// means what it holds.
func (s *store) endReplay(ctx context.Context, id int64, why string) error {
	_, err := s.affected(ctx, "end a replay", "UPDATE dead_letters SET replay_waiting = FALSE, replay_error = ? WHERE id = ?", why, id)
	return err
}

// hinderReplay says why a dead letter still waits.
func (s *store) hinderReplay(ctx context.Context, id int64, why string) error {
	_, err := s.affected(ctx, "note what hinders a replay", "UPDATE dead_letters SET replay_error = ? WHERE id = ? AND replay_error <> ?", why, id, why)
	return err
}

// failReplay keeps a dead letter that failed again, with the new error.
func (s *store) failReplay(ctx context.Context, l *DeadLetter, waiting bool) error {
	_, err := s.affected(ctx, "keep a dead letter that failed again", `UPDATE dead_letters SET attempts = attempts + 1, failed_at = ?, class = ?,
		code = ?, message = ?, replay_waiting = ?, replay_error = ? WHERE id = ?`,
		l.FailedAt.UnixMicro(), l.Class, l.Code, l.Message, waiting, l.Code+": "+l.Message, l.ID)
	return err
}

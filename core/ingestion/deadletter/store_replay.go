package deadletter

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// requestReplay requests a replay of the dead letters that do not wait for one
// yet, and returns their number.
func (s *Store) requestReplay(ctx context.Context, projectID int64, ids []int64, at time.Time) (int, error) {
	return affected("request a replay")(s.update(ctx).
		Set("replay_requested_at = ?", db.At(at)).Set("replay_waiting = TRUE").Set("replay_error = ''").
		Where("project_id = ?", projectID).Where("id IN (?)", bun.List(ids)).Where("NOT replay_waiting").Exec(ctx))
}

// replayOutcome counts what remains of the dead letters whose replay was
// requested at that time, and lists the first failures.
func (s *Store) replayOutcome(ctx context.Context, projectID int64, at time.Time, limit int) (waiting, failed int, list []ReplayFailure, err error) {
	requested := func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("project_id = ?", projectID).Where("replay_requested_at = ?", db.At(at))
	}
	err = s.db.Read(ctx).NewSelect().Model((*row)(nil)).Apply(requested).
		ColumnExpr("COALESCE(SUM(CASE WHEN replay_waiting THEN 1 ELSE 0 END), 0)").
		ColumnExpr("COALESCE(SUM(CASE WHEN replay_waiting THEN 0 ELSE 1 END), 0)").Scan(ctx, &waiting, &failed)
	list = []ReplayFailure{}
	if err == nil && failed > 0 {
		err = s.db.Read(ctx).NewSelect().Model((*row)(nil)).Column("id").ColumnExpr("replay_error AS error").Apply(requested).
			Where("NOT replay_waiting").Order("id").Limit(int64(limit)).Scan(ctx, &list)
	}
	if err != nil {
		return 0, 0, nil, fmt.Errorf("read the outcome of a replay: %w", err)
	}
	return waiting, failed, list, nil
}

// WaitingSource returns the first source after the given one that has dead
// letters waiting for a replay, or "".
func (s *Store) WaitingSource(ctx context.Context, after string) (string, error) {
	var source string
	err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).Column("source").
		Where("replay_waiting").Where("source > ?", after).Order("source").Limit(1).Scan(ctx, &source)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("look for requested replays: %w", err)
	}
	return source, nil
}

// NextReplay returns the oldest dead letter of a source that waits for a replay;
// false when there is none.
func (s *Store) NextReplay(ctx context.Context, source string) (Entry, bool, error) {
	var r row
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("replay_waiting").Where("source = ?", source).Order("id").Limit(1).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Entry{}, false, nil
	case err != nil:
		return Entry{}, false, fmt.Errorf("read the next replay: %w", err)
	}
	return r.entry(), true, nil
}

// DeleteIfUnchanged deletes a dead letter that still holds this payload. It
// returns false if it holds another one or is gone.
func (s *Store) DeleteIfUnchanged(ctx context.Context, id int64, payload json.RawMessage) (bool, error) {
	n, err := affected("delete a replayed dead letter")(s.db.Write(ctx).NewDelete().Model((*row)(nil)).
		Where("id = ?", id).Where("payload = ?", string(payload)).Exec(ctx))
	return n > 0, err
}

// EndReplay ends the replay of a dead letter, which stays, with an error.
func (s *Store) EndReplay(ctx context.Context, id int64, cause string) error {
	_, err := affected("end a replay")(s.update(ctx).
		Set("replay_waiting = FALSE").Set("replay_error = ?", cause).Where("id = ?", id).Exec(ctx))
	return err
}

// SetReplayError writes why a dead letter still waits for its replay.
func (s *Store) SetReplayError(ctx context.Context, id int64, cause string) error {
	_, err := affected("write the error of a replay")(s.update(ctx).
		Set("replay_error = ?", cause).Where("id = ?", id).Where("replay_error <> ?", cause).Exec(ctx))
	return err
}

// FailReplay keeps a dead letter whose replay failed, with the new error. It
// goes on waiting if waiting is true.
func (s *Store) FailReplay(ctx context.Context, e *Entry, waiting bool) error {
	_, err := affected("keep a dead letter whose replay failed")(s.update(ctx).
		Set("attempts = attempts + 1").Set("failed_at = ?", db.At(e.FailedAt)).Set("class = ?", e.Class).
		Set("code = ?", e.Code).Set("message = ?", e.Message).
		Set("replay_waiting = ?", waiting).Set("replay_error = ?", e.Code+": "+e.Message).Where("id = ?", e.ID).Exec(ctx))
	return err
}

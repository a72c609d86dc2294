package flags

import (
	"context"
	"fmt"
	"time"
)

// called notes that clients asked for a flag. A key no flag has is no error,
// and an earlier time than the noted one changes nothing.
func (s *Store) called(ctx context.Context, projectID int64, key string, at time.Time) error {
	_, err := s.db.Write(ctx).NewRaw(
		`INSERT INTO feature_flag_calls (flag_id, last_called_at)
		 SELECT id, ? FROM feature_flags WHERE project_id = ? AND key = ?
		 ON CONFLICT (flag_id) DO UPDATE SET last_called_at = excluded.last_called_at
		 WHERE excluded.last_called_at > feature_flag_calls.last_called_at`, at.UnixMicro(), projectID, key).Exec(ctx)
	if err != nil {
		return fmt.Errorf("note the call of flag %q: %w", key, err)
	}
	return nil
}

// afterCommit runs fn when the transaction in ctx has been committed.
func (s *Store) afterCommit(ctx context.Context, fn func()) { s.db.AfterCommit(ctx, fn) }

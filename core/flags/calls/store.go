package calls

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
)

// Store keeps the time of the last call of each flag in the database.
type Store struct{ db *db.DB }

// NewStore returns the calls in d.
func NewStore(d *db.DB) *Store { return &Store{db: d} }

// record stores a call of a flag. It ignores keys without a flag and times before
// the stored one. It joins the transaction in ctx.
func (s *Store) record(ctx context.Context, c call, at time.Time) error {
	// Raw: an upsert from a select, with a condition on the old value.
	_, err := s.db.Write(ctx).NewRaw(
		`INSERT INTO feature_flag_calls (flag_id, last_called_at)
		 SELECT id, ? FROM feature_flags WHERE project_id = ? AND key = ?
		 ON CONFLICT (flag_id) DO UPDATE SET last_called_at = excluded.last_called_at
		 WHERE excluded.last_called_at > feature_flag_calls.last_called_at`, at.UnixMicro(), c.project, c.key).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store call of flag %q: %w", c.key, err)
	}
	return nil
}

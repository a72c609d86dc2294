package dbclock

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
)

type store struct{ db *db.DB }

// now returns the time of Postgres.
func (s store) now(ctx context.Context) (time.Time, error) {
	var micros int64
	err := s.db.Read(ctx).QueryRowContext(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&micros)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the database: %w", err)
	}
	return time.UnixMicro(micros).UTC(), nil
}

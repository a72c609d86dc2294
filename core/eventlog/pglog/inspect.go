package pglog

import (
	"context"
	"errors"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
)

// Inspect looks at the log in d, and changes nothing.
func Inspect(ctx context.Context, d *db.DB) (found logstate.Inspection, err error) {
	if !d.Postgres() {
		return found, errors.New("journal.url: postgres needs a database.url of PostgreSQL")
	}
	s := store{d.Pool()} // of d, so it is not closed
	syncs, err := s.syncs(ctx)
	if err != nil {
		return found, err
	}
	if !syncs {
		found.Weaknesses = []string{"the server has fsync off"}
	}
	id, err := s.existing(ctx)
	if err != nil || id == "" {
		return found, err
	}
	h, err := s.head(ctx)
	if err != nil {
		return found, err
	}
	for _, end := range h.ends {
		found.Ends = append(found.Ends, uint64(end))
	}
	found.ID = id
	return found, nil
}

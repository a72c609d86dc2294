package app

import (
	"context"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"

	"github.com/guidonhq/guidon/core/db"
)

// DeadLetter is an event that the worker or a sink rejected for good.
type DeadLetter = deadletter.Entry

// DeadLetterFilter selects dead letters of a project. Zero fields do not filter.
type DeadLetterFilter = deadletter.Filter

// DeadLetters gives one command of the command line access to the dead letters
// of a database, with or without a running server. A replay is carried out by
// the server that runs on the same database, or by the next one to start.
type DeadLetters struct {
	*deadletter.Service
	db *db.DB
}

// OpenDeadLetters opens the database named by cfg. It fails with the errors of
// db.OpenExisting unless the database exists and has the schema of this binary.
func OpenDeadLetters(ctx context.Context, cfg Config) (*DeadLetters, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &DeadLetters{Service: deadletter.NewService(d, cfg.Ingestion.Limits, nil), db: d}, nil
}

// Close closes the database.
func (d *DeadLetters) Close() error { return d.db.Close() }

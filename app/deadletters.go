package app

import (
	"context"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion"
)

// DeadLetter is an event that the worker or a sink could not take.
type DeadLetter = ingestion.DeadLetter

// DeadLetterFilter says which dead letters of a project. Zero fields do not
// filter.
type DeadLetterFilter = ingestion.LetterFilter

// DeadLetters is the dead letters of a database that is opened for one verb of
// the command line, beside a server or without one. What is to be sent again
// is sent by a server that runs on the same database, or by the next one.
type DeadLetters struct {
	*ingestion.Letters
	db *db.DB
}

// OpenDeadLetters opens the database named by cfg and brings it to the newest
// schema.
func OpenDeadLetters(ctx context.Context, cfg Config) (*DeadLetters, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &DeadLetters{Letters: ingestion.NewLetters(d, cfg.Ingestion.Limits, nil), db: d}, nil
}

// Close closes the database.
func (d *DeadLetters) Close() error { return d.db.Close() }

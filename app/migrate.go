package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
)

// Migration are the options of Migrate.
type Migration struct {
	// WhileServing migrates a Postgres database although a server runs on the
	// data directory. It has no effect on SQLite.
	WhileServing bool
}

// Migrate creates the database named by cfg if it is missing, brings it to the
// newest schema and prints the schema version to out. It changes nothing and
// fails while a server holds the data directory, unless the schema is the newest
// already or m allows it. Servers with another data directory on the same
// Postgres database are not noticed.
func Migrate(ctx context.Context, cfg Config, m Migration, out io.Writer) error {
	lock, held := journal.AcquireLock(cfg.Journal, cfg.DataDir)
	if held != nil {
		return migrateBesideServer(ctx, cfg, m, held, out)
	}
	d, err := db.Open(ctx, cfg.Database, cfg.DataDir)
	if err != nil {
		return closing(releaser{lock}, err)
	}
	if err = d.Migrate(ctx); err == nil {
		err = printSchema(ctx, d, out)
	}
	return closing(releaser{lock}, closing(d, err))
}

// migrateBesideServer is Migrate when the lock cannot be taken because of held.
func migrateBesideServer(ctx context.Context, cfg Config, m Migration, held error, out io.Writer) error {
	d, err := openDB(ctx, cfg)
	if err == nil {
		return closing(d, printSchema(ctx, d, out)) // nothing to migrate
	}
	if _, older := errors.AsType[*db.OlderSchemaError](err); !older {
		return errors.Join(held, err)
	}
	if d, err = db.Open(ctx, cfg.Database, cfg.DataDir); err != nil {
		return err
	}
	if !m.WhileServing || !d.Postgres() {
		return closing(d, fmt.Errorf("stop the server before the migration: %w", held))
	}
	if err = d.Migrate(ctx); err == nil {
		err = printSchema(ctx, d, out)
	}
	return closing(d, err)
}

func printSchema(ctx context.Context, d *db.DB, out io.Writer) error {
	current, known, err := d.Version(ctx)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s is at schema %d; the newest this binary knows is %d\n", d, current, known)
	}
	return err
}

// releaser makes a lock an io.Closer.
type releaser struct{ lock *journal.Lock }

func (r releaser) Close() error { return r.lock.Release() }

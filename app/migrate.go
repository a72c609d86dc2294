package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/transfer"
	"github.com/guidonhq/guidon/migrations"
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
	lock, held := journal.AcquireLock(cfg.Journal.Config, cfg.DataDir)
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

// SchemaStep is one step of the schema as the database and this binary see it.
type SchemaStep = db.StepStatus

// SchemaSteps returns the steps of the schema of the database named by cfg and of this
// binary, ascending. It creates and migrates nothing: without a database no step is
// applied, and the name of the database is "".
func SchemaSteps(ctx context.Context, cfg Config) (database string, steps []SchemaStep, err error) {
	d, err := openDB(ctx, cfg)
	if _, none := errors.AsType[*db.NoDatabaseError](err); none {
		known, err := migrations.Load(migrations.SQLite) // both dialects have the same steps
		for _, s := range known {
			steps = append(steps, SchemaStep{Number: s.Number, Name: s.Name, Known: true})
		}
		return "", steps, err
	}
	if err != nil {
		_, older := errors.AsType[*db.OlderSchemaError](err)
		if _, newer := errors.AsType[*db.NewerSchemaError](err); !older && !newer {
			return "", nil, err
		}
		if d, err = db.Open(ctx, cfg.Database, cfg.DataDir); err != nil {
			return "", nil, err
		}
	}
	steps, err = d.Steps(ctx)
	return d.String(), steps, closing(d, err)
}

// MigrateTo brings the database named by cfg to the schema step with the number, up or
// down, and prints the schema version to out. What the tables of the steps that it takes
// back held is lost. It creates no database, and fails while a server holds the data
// directory.
func MigrateTo(ctx context.Context, cfg Config, number int, out io.Writer) error {
	database, _, err := SchemaSteps(ctx, cfg)
	if err != nil {
		return err
	}
	if database == "" {
		return errors.New("there is no database to migrate: guidon migrate without --to creates it")
	}
	lock, err := journal.AcquireLock(cfg.Journal.Config, cfg.DataDir)
	if err != nil {
		return fmt.Errorf("stop the server before the migration: %w", err)
	}
	d, err := db.Open(ctx, cfg.Database, cfg.DataDir)
	if err != nil {
		return closing(releaser{lock}, err)
	}
	if err = d.MigrateTo(ctx, number); err == nil {
		err = printSchema(ctx, d, out)
	}
	return closing(releaser{lock}, closing(d, err))
}

// The types of data transfers, for the command line.
type (
	// TransferOptions are the options of Transfer.
	TransferOptions = transfer.Options
	// TransferProgress is how far a transfer has come.
	TransferProgress = transfer.Progress
	// TransferReport is the result of a transfer.
	TransferReport = transfer.Report
	// BrokenRow is a row that a transfer leaves out.
	BrokenRow = transfer.BrokenRow
)

// Transfer copies the database from to the database to, which are as in
// transfer.Databases. See transfer.Run. The activity log of both has an entry of it.
func Transfer(ctx context.Context, cfg Config, from, to string, o TransferOptions) (*TransferReport, error) {
	source, dest, err := transfer.Databases(cfg.Database, from, to)
	if err != nil {
		return nil, err
	}
	o.Announce = func(ctx context.Context, d *db.DB, target string) error {
		return logOperation(ctx, d, &activity.Event{Scope: "Database", ItemID: "database", Activity: "copied", Name: target})
	}
	return transfer.Run(ctx, transfer.Config{From: source, To: dest, Journal: cfg.Journal.Config, DataDir: cfg.DataDir}, o)
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

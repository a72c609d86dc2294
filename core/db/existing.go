package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// NoDatabaseError reports that there is no database to work on. Nothing was
// created.
type NoDatabaseError struct {
	Where string // the place that was searched, without secrets
}

// Error is one sentence for the operator.
func (e *NoDatabaseError) Error() string {
	return fmt.Sprintf("no guidon database: %s; check the configuration and the working directory, or run guidon serve or guidon migrate to create one", e.Where)
}

// OlderSchemaError reports a database that lacks migrations of this binary.
// Nothing was changed.
type OlderSchemaError struct {
	Database int // the highest applied step
	Known    int // the highest step of this binary
	Missing  int // the number of steps that are not applied
}

// Error is one sentence for the operator.
func (e *OlderSchemaError) Error() string {
	return fmt.Sprintf("database is at schema %d, this binary needs schema %d (%d steps are missing): run guidon migrate, or start guidon serve with this binary", e.Database, e.Known, e.Missing)
}

// OpenExisting is Open for commands that must not create or migrate anything.
// It fails with a *NoDatabaseError if there is no database or no schema in it,
// with an *OlderSchemaError if the schema lacks steps of this binary, and with
// a *NewerSchemaError if it has steps that this binary does not know.
func OpenExisting(ctx context.Context, cfg Config, dataDir string) (*DB, error) {
	t, err := parseURL(cfg.URL, dataDir)
	if err != nil {
		return nil, err
	}
	if err := t.exists(); err != nil {
		return nil, err
	}
	d, err := Open(ctx, cfg, dataDir)
	if err != nil {
		return nil, err
	}
	if err := d.CheckSchema(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// exists returns a *NoDatabaseError if the target is a SQLite file that does not
// exist or is empty.
func (t target) exists() error {
	if t.file == "" {
		return nil
	}
	path, err := filepath.Abs(t.file)
	if err != nil {
		return fmt.Errorf("find SQLite file %s: %w", t.file, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NoDatabaseError{Where: "there is no SQLite file " + path}
	case err == nil && info.Size() == 0:
		return &NoDatabaseError{Where: "SQLite file " + path + " is empty"}
	}
	return err
}

// CheckSchema returns nil if the schema is the one of this binary, else one of
// the errors of OpenExisting. It changes nothing.
func (d *DB) CheckSchema(ctx context.Context) error {
	steps, err := d.Steps(ctx)
	if err != nil {
		return err
	}
	older, newer := OlderSchemaError{}, NewerSchemaError{}
	for _, s := range steps {
		applied := !s.AppliedAt.IsZero()
		switch {
		case applied && !s.Known:
			newer.Unknown = append(newer.Unknown, s.Number)
		case !applied:
			older.Missing++
		}
		if applied {
			older.Database = s.Number
		}
		if s.Known {
			older.Known = s.Number
		}
	}
	newer.Database, newer.Known = older.Database, older.Known
	switch {
	case newer.Unknown != nil:
		return &newer
	case older.Database == 0:
		return &NoDatabaseError{Where: d.name + " has no guidon schema"}
	case older.Missing > 0:
		return &older
	}
	return nil
}

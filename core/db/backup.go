package db

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/guidonhq/guidon/migrations"
)

// Postgres reports whether the URL names a PostgreSQL server.
func (c Config) Postgres() bool {
	t, err := parseURL(c.URL, "")
	return err == nil && t.postgres != ""
}

// SQLiteFile returns the absolute path of the SQLite file that c names with a data
// directory; "" for PostgreSQL.
func (c Config) SQLiteFile(dataDir string) (string, error) {
	t, err := parseURL(c.URL, dataDir)
	if err != nil || t.postgres != "" {
		return "", err
	}
	return filepath.Abs(t.file)
}

// KnownSteps returns the numbers of the schema steps of this binary.
func (c Config) KnownSteps() (map[int]bool, error) {
	dialect := migrations.SQLite
	if c.Postgres() {
		dialect = migrations.Postgres
	}
	steps, err := migrations.Load(dialect)
	if err != nil {
		return nil, err
	}
	known := make(map[int]bool, len(steps))
	for _, s := range steps {
		known[s.Number] = true
	}
	return known, nil
}

// File returns the path of the SQLite file; "" on PostgreSQL.
func (d *DB) File() string { return d.file }

// RebuildTo reverts all steps of the schema and applies the given ones: the tables are
// empty then, but for the rows that steps insert. It fails and changes nothing if the
// database or the list has a step that this binary does not know.
func (d *DB) RebuildTo(ctx context.Context, numbers []int) error {
	steps, err := migrations.Load(d.dialect())
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(steps), func(s migrations.Step) bool { return !slices.Contains(numbers, s.Number) })
	if len(wanted) != len(numbers) {
		return fmt.Errorf("this version does not know all of the schema steps %v: run a newer guidon", numbers)
	}
	if err := d.Revert(ctx, len(steps)); err != nil {
		return err
	}
	return d.apply(ctx, wanted)
}

package db

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/migrations"
)

// NewerSchemaError reports migrations in the database that this binary does not
// know. Nothing was changed.
type NewerSchemaError struct {
	Database int   // the highest applied step
	Known    int   // the highest step of this binary
	Unknown  []int // the applied steps this binary does not know
}

// TransferMark is the number of a step that core/transfer adds to a database until it has
// all rows, so that no server starts on it.
const TransferMark = 1 << 30

// Error is one sentence for the operator.
func (e *NewerSchemaError) Error() string {
	if slices.Contains(e.Unknown, TransferMark) {
		return "database is the target of an unfinished guidon migrate-data: run the same command again"
	}
	if e.Database > e.Known {
		return fmt.Sprintf("database is at schema %d, this binary knows up to %d: run a newer guidon", e.Database, e.Known)
	}
	return fmt.Sprintf("database has schema steps %v, which this binary does not know: run a newer guidon", e.Unknown)
}

// StepStatus is one step of the schema as this database and this binary see it.
type StepStatus struct {
	Number    int
	Name      string
	AppliedAt time.Time // zero: not applied
	Known     bool      // this binary has it
}

// Version returns the highest applied step and the highest one this binary
// knows; 0 on an empty database. Lower steps may still be missing: Steps tells.
func (d *DB) Version(ctx context.Context) (current, known int, err error) {
	steps, err := d.Steps(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, s := range steps {
		if !s.AppliedAt.IsZero() {
			current = s.Number
		}
		if s.Known {
			known = s.Number
		}
	}
	return current, known, nil
}

// Steps lists every step that the database has or the binary knows, ascending.
// It changes nothing.
func (d *DB) Steps(ctx context.Context) ([]StepStatus, error) {
	known, err := migrations.Load(d.dialect())
	if err != nil {
		return nil, err
	}
	applied, err := d.applied(ctx, d.readers[pools.Internal])
	if err != nil {
		return nil, err
	}
	var out []StepStatus
	for _, s := range known {
		out = append(out, StepStatus{Number: s.Number, Name: s.Name, AppliedAt: applied[s.Number].AppliedAt, Known: true})
		delete(applied, s.Number)
	}
	for _, s := range applied {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b StepStatus) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// Migrate applies every step the database lacks, in the order of their numbers,
// each with its mark in one transaction. It fails with a *NewerSchemaError, and
// changes nothing, when the database has a step this binary does not know.
// Processes that migrate at the same time take turns; each step runs once.
func (d *DB) Migrate(ctx context.Context) error {
	steps, err := migrations.Load(d.dialect())
	if err != nil {
		return err
	}
	return d.apply(ctx, steps)
}

// MigrateTo applies every missing step up to the number, as Migrate does, and takes back
// the applied steps above it, as Revert does. It fails if this binary has no such step; 0
// takes back all.
func (d *DB) MigrateTo(ctx context.Context, number int) error {
	steps, err := migrations.Load(d.dialect())
	if err != nil {
		return err
	}
	last := slices.IndexFunc(steps, func(s migrations.Step) bool { return s.Number == number })
	if last < 0 && number != 0 {
		return fmt.Errorf("this binary has no schema step %d; its newest is %d", number, steps[len(steps)-1].Number)
	}
	applied, err := d.applied(ctx, d.readers[pools.Internal])
	if err != nil {
		return err
	}
	if err := refuseNewer(applied, steps); err != nil {
		return err
	}
	above := 0
	for n := range applied {
		if n > number {
			above++
		}
	}
	if err := d.Revert(ctx, above); err != nil {
		return err
	}
	return d.apply(ctx, steps[:last+1])
}

func (d *DB) apply(ctx context.Context, steps []migrations.Step) error {
	return d.migrating(ctx, func(conn *sql.Conn) error {
		for {
			more, err := d.inStep(ctx, conn, func(tx *sql.Tx) (bool, error) { return d.applyNext(ctx, tx, steps) })
			if err != nil || !more {
				return err
			}
		}
	})
}

// Revert takes back the count highest applied steps, highest first, each in
// one transaction with its mark. What their tables held is lost.
func (d *DB) Revert(ctx context.Context, count int) error {
	steps, err := migrations.Load(d.dialect())
	if err != nil {
		return err
	}
	return d.migrating(ctx, func(conn *sql.Conn) error {
		for range count {
			more, err := d.inStep(ctx, conn, func(tx *sql.Tx) (bool, error) { return d.revertLast(ctx, tx, steps) })
			if err != nil || !more {
				return err
			}
		}
		return nil
	})
}

func (d *DB) dialect() migrations.Dialect {
	if d.Postgres() {
		return migrations.Postgres
	}
	return migrations.SQLite
}

// applyNext applies the lowest missing step; false when none is missing.
func (d *DB) applyNext(ctx context.Context, tx *sql.Tx, steps []migrations.Step) (bool, error) {
	applied, err := d.applied(ctx, tx)
	if err != nil {
		return false, err
	}
	if err := refuseNewer(applied, steps); err != nil {
		return false, err
	}
	i := slices.IndexFunc(steps, func(s migrations.Step) bool { _, done := applied[s.Number]; return !done })
	if i < 0 {
		return false, nil
	}
	s := steps[i]
	if _, err := tx.ExecContext(ctx, s.Up); err != nil {
		return false, fmt.Errorf("apply migration %04d_%s: %w", s.Number, s.Name, err)
	}
	mark := fmt.Sprintf("INSERT INTO schema_migrations (number, name, applied_at) VALUES (%d, '%s', %d)", s.Number, s.Name, time.Now().UnixMicro())
	if _, err := tx.ExecContext(ctx, mark); err != nil {
		return false, fmt.Errorf("mark migration %04d_%s: %w", s.Number, s.Name, err)
	}
	return true, nil
}

// revertLast takes back the highest applied step; false when none is applied.
func (d *DB) revertLast(ctx context.Context, tx *sql.Tx, steps []migrations.Step) (bool, error) {
	applied, err := d.applied(ctx, tx)
	if err != nil {
		return false, err
	}
	if err := refuseNewer(applied, steps); err != nil || len(applied) == 0 {
		return false, err
	}
	for _, s := range slices.Backward(steps) {
		if _, done := applied[s.Number]; !done {
			continue
		}
		if _, err := tx.ExecContext(ctx, s.Down); err != nil {
			return false, fmt.Errorf("revert migration %04d_%s: %w", s.Number, s.Name, err)
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("DELETE FROM schema_migrations WHERE number = %d", s.Number)); err != nil {
			return false, fmt.Errorf("unmark migration %04d_%s: %w", s.Number, s.Name, err)
		}
		return true, nil
	}
	return false, nil
}

func refuseNewer(applied map[int]StepStatus, steps []migrations.Step) error {
	e := NewerSchemaError{}
	known := make(map[int]bool, len(steps))
	for _, s := range steps {
		known[s.Number] = true
		e.Known = s.Number
	}
	for number := range applied {
		e.Database = max(e.Database, number)
		if !known[number] {
			e.Unknown = append(e.Unknown, number)
		}
	}
	if e.Unknown == nil {
		return nil
	}
	slices.Sort(e.Unknown)
	return &e
}

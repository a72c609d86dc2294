package requestlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbclock"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
	"github.com/guidonhq/guidon/core/eventlog/pglog"
)

// Report is the state of a log that servers share, as Inspect finds it.
type Report struct {
	// Name describes the log without credentials.
	Name string
	logstate.Inspection
	// Other is the log that the database belongs to, if it is another one.
	Other string
	// Behind has the number of records that each reader has not done.
	Behind map[string]uint64
	// Processing counts the living servers that own partitions, and Unowned lists the
	// partitions without one.
	Processing int
	Unowned    []int
	// Clock is by how much the clock of this machine is ahead of that of the database.
	Clock time.Duration
}

// Inspect looks at the shared log of cfg and at the servers that use it, and changes
// nothing. The report has Name also after an error. A log that does not exist yet is a
// Report without an ID.
func Inspect(ctx context.Context, cfg Config, database db.Config, dataDir string) (r Report, err error) {
	r.Name = "tables of the database"
	if !cfg.inPostgres() {
		target, err := kafka.Parse(cfg.URL)
		if err != nil {
			return r, fmt.Errorf("journal.url: %w", err)
		}
		r.Name = fmt.Sprintf("topic %s on %s", target.Topic, strings.Join(target.Brokers, ", "))
		if r.Inspection, err = kafka.Inspect(ctx, cfg.kafka()); err != nil {
			return r, err
		}
	}
	d, err := db.OpenExisting(ctx, database, dataDir)
	if _, none := errors.AsType[*db.NoDatabaseError](err); none { // its servers have not begun to use the log
		r.Inspection = logstate.Inspection{}
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the cursors: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if cfg.inPostgres() {
		if r.Inspection, err = pglog.Inspect(ctx, d); err != nil {
			return r, err
		}
	}
	return r, r.readDatabase(ctx, d)
}

// readDatabase reads what servers have stored of the log.
func (r *Report) readDatabase(ctx context.Context, d *db.DB) error {
	clock := dbclock.New(d)
	if err := clock.Sync(ctx); err != nil {
		return fmt.Errorf("read the clock of the database: %w", err)
	}
	r.Clock = time.Since(clock.Now())
	if r.ID == "" {
		return nil
	}
	used, err := store{d}.usedLog(ctx)
	if err != nil {
		return fmt.Errorf("read the log of the database: %w", err)
	}
	if used != "" && used != r.ID {
		r.Other = used
		return nil
	}
	all, err := cursors.New(d).List(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("read the cursors: %w", err)
	}
	r.Behind = map[string]uint64{}
	for _, c := range all {
		if c.Partition < len(r.Ends) {
			r.Behind[c.Reader] += r.Ends[c.Partition] - min(c.Position.Seq, r.Ends[c.Partition])
		}
	}
	owners, err := store{d}.owners(ctx)
	if err != nil {
		return fmt.Errorf("read the leases: %w", err)
	}
	r.Processing = len(slices.Compact(slices.Sorted(maps.Values(owners))))
	for i := range r.Ends {
		if owners[i] == "" {
			r.Unowned = append(r.Unowned, i)
		}
	}
	return nil
}

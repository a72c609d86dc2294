// Package transfer copies the whole database of a stopped server from SQLite to an empty
// PostgreSQL database. A server that starts there with the same data directory continues:
// rows keep their numbers, and the cursors move with what was processed up to them, so
// that each record of the journal is processed once.
//
// The tables are the same in both databases, and are read from both catalogs. Each table
// is read in the order of its rowid or primary key, in one read transaction, and written
// in batches by COPY in its binary format. A batch commits with the key of its last row,
// so that a transfer that ends at any time, also by kill -9, is continued by the next one.
// Until it is complete, a mark among the steps of the schema keeps servers from starting on
// the target. The indexes of large tables are created after their rows.
//
// What differs between the databases:
//
//   - Properties of events that are compressed with a dictionary arrive as text.
//   - Booleans are numbers in SQLite. The type of the column in PostgreSQL
//     distinguishes bytes, texts and UUIDs.
//   - A text with NUL or with bytes that are no UTF-8, which PostgreSQL refuses, arrives
//     with U+FFFD in their place, as the event store writes it. The report counts them.
//   - Identity columns go on behind the highest number that SQLite has given.
//
// Every table ends with a comparison: the number of rows, and the sum of the checksums of
// the rows as they were written and as they are read back. A row that refers to a missing
// row, one whose content is damaged, and one that PostgreSQL refuses end the transfer
// unless they may be left out; then they are written to a file.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
)

// Config names the databases and the installation that both belong to.
type Config struct {
	From, To db.Config
	Journal  journal.Config
	DataDir  string
}

// Databases returns the databases that the arguments of a command name. from is "sqlite"
// for the SQLite file of the configuration, or of the data directory if the configuration
// names PostgreSQL already; or "sqlite:PATH". to is "postgres" for the database of the
// configuration, or a URL.
func Databases(configured db.Config, from, to string) (source, dest db.Config, err error) {
	source, dest = configured, configured
	switch {
	case from != "sqlite":
		source.URL = from
	case configured.Postgres():
		source.URL = ""
	}
	if to != "postgres" {
		dest.URL = to
	}
	switch {
	case source.Postgres() || source.URL != "" && source.Validate() != nil:
		return source, dest, errors.New(`the source must be "sqlite" or "sqlite:PATH"`)
	case to == "postgres" && !dest.Postgres():
		return source, dest, errors.New("database.url of the configuration names no Postgres database: set it to that of the target, or name the target by its URL")
	case !dest.Postgres() || dest.Validate() != nil:
		return source, dest, errors.New(`the target must be "postgres" or "postgres://user:password@host/database" (the value is not shown, it may hold a password)`)
	}
	return source, dest, nil
}

// Options are the options of Run.
type Options struct {
	// DryRun checks both databases and counts rows. It changes nothing.
	DryRun bool
	// Verify compares the databases. It changes nothing.
	Verify bool
	// Restart deletes what an unfinished transfer has written, and begins again.
	Restart bool
	// BrokenRows receives rows that are left out; nil fails at the first one.
	BrokenRows func(BrokenRow) error
	// Announce is called before a new transfer reads the source, to which it may write;
	// nil does nothing. It is not called when a transfer continues.
	Announce func(ctx context.Context, from *db.DB, to string) error
	// Progress is called after each batch; it may be nil.
	Progress func(Progress)
	// BatchBytes bounds a batch; 0 for the default.
	BatchBytes int
	largeTable int // in rows; 0 for the default
}

// Progress is how far a transfer has come.
type Progress struct {
	Stage        string // what it does: copying, indexing or verifying
	Table        string
	Tables, Of   int // of the stage: begun, and all
	Rows, AllOf  int64
	RowsResumed  int64 // of Rows, from before the transfer was continued
	BytesWritten int64
}

// BrokenRow is a row that is left out.
type BrokenRow struct {
	Table  string         `json:"table"`
	Key    string         `json:"key,omitempty"` // unknown if PostgreSQL refuses the row
	Reason string         `json:"reason"`
	Row    map[string]any `json:"row"`
}

// TableReport is the result for a table. Target and its checksum are those of a
// comparison.
type TableReport struct {
	Name           string `json:"name"`
	Rows           int64  `json:"rows"`
	Skipped        int64  `json:"skipped"`
	Replaced       int64  `json:"replaced_texts"`
	Checksum       string `json:"checksum"`
	TargetRows     int64  `json:"target_rows"`
	TargetChecksum string `json:"target_checksum"`
}

// Equal reports whether the rows of both databases are equal.
func (t *TableReport) Equal() bool {
	return t.Rows-t.Skipped == t.TargetRows && t.Checksum == t.TargetChecksum
}

// Report is the result of Run.
type Report struct {
	From     string        `json:"from"`
	To       string        `json:"to"`
	Tables   []TableReport `json:"tables"`
	Resumed  bool          `json:"resumed"`
	Complete bool          `json:"complete_before"` // a transfer was complete already
	Bytes    int64         `json:"bytes"`
	Took     time.Duration `json:"-"`
}

// Differing returns the names of the tables that are not equal.
func (r *Report) Differing() (names []string) {
	for i := range r.Tables {
		if !r.Tables[i].Equal() {
			names = append(names, r.Tables[i].Name)
		}
	}
	return names
}

// Errors of Run.
var (
	// ErrDiffers reports that a comparison found tables that are not equal.
	ErrDiffers = errors.New("source and target differ")
	// ErrChanged reports that the source changed since the transfer began.
	ErrChanged = errors.New("the source changed since the transfer began: begin again with --restart")
)

// Run copies the database From to To, or does what the options say. After an error the
// same call continues where it ended. A complete target of the same source is compared,
// and left as it is.
func Run(ctx context.Context, c Config, o Options) (*Report, error) {
	begin := time.Now()
	if !o.DryRun && !o.Verify {
		lock, err := journal.AcquireLock(c.Journal, c.DataDir)
		if errors.Is(err, journal.ErrLocked) {
			return nil, fmt.Errorf("a server runs on the source: stop it first: %w", err)
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = lock.Release() }()
	}
	s, err := open(ctx, c, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	err = s.run(ctx)
	s.report.Took = time.Since(begin)
	return s.report, err
}

// session is a transfer while it runs.
type session struct {
	options  Options
	from, to *db.DB
	file     string // of the source
	src      *source
	dst      *target // nil if the target of a dry run has no schema
	plan     []*tablePlan
	broken   map[string]map[string]string // reasons by table and encoded key
	report   *Report
	progress Progress
	notes    map[string]string
}

func open(ctx context.Context, c Config, o Options) (_ *session, err error) {
	if c.From.Postgres() || !c.To.Postgres() {
		return nil, errors.New("only a transfer from SQLite to Postgres is possible")
	}
	s := &session{options: o, report: &Report{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.from, err = db.OpenExisting(ctx, c.From, c.DataDir); err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	if s.file, err = c.From.SQLiteFile(c.DataDir); err != nil {
		return nil, err
	}
	if s.to, err = db.Open(ctx, c.To, c.DataDir); err != nil {
		return nil, fmt.Errorf("open the target: %w", err)
	}
	s.report.From, s.report.To = s.from.String(), s.to.String()
	ready, err := prepareSchema(ctx, s.to, o.DryRun || o.Verify)
	if err != nil {
		return nil, err
	}
	if ready {
		if s.dst, err = openTarget(ctx, s.to); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// prepareSchema creates the schema in a target that has none. ready is false for such a
// target if nothing may be changed.
func prepareSchema(ctx context.Context, d *db.DB, readOnly bool) (ready bool, err error) {
	current, _, err := d.Version(ctx)
	switch {
	case err != nil:
		return false, err
	case current == 0 && readOnly:
		return false, nil
	case current == 0:
		if err := d.Migrate(ctx); err != nil {
			return false, fmt.Errorf("create the schema in %s: %w", d, err)
		}
	}
	return true, checkTargetSchema(ctx, d)
}

func (s *session) close() {
	if s.src != nil {
		s.src.Close()
	}
	if s.dst != nil {
		s.dst.Close()
	}
	for _, d := range []*db.DB{s.from, s.to} {
		if d != nil {
			_ = d.Close() // nothing is written at the end
		}
	}
}

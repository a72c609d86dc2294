// Package backup writes and restores backups of a server: its database, its journal
// and what identifies its configuration.
//
// A backup is one archive (core/backup/archive) in a directory or a bucket
// (core/backup/place). It is the state of one moment, the begin of the backup, and is
// taken while the server works: a read transaction on the database, then one on the
// journal. The journal therefore holds every record that the database has not processed,
// and each event that was acknowledged before the backup began is in one of the two.
// Both are read page by page on SQLite, and table by table with COPY on PostgreSQL, at a
// limited rate and a low priority.
//
// While the transactions are open, the write-ahead logs of SQLite grow by what is
// written meanwhile. The journal is read first, because it is written most.
//
// A restore verifies the whole archive before it changes anything. The server that
// starts on the result processes the journal from the position of the database on: the
// journal of the backup, or the one of the installation if that is still there and goes
// further. Restore can end the journal at a time, and so restores a moment between the
// backup and its end.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"filippo.io/age"
	"golang.org/x/time/rate"

	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/backup/schedule"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
)

// Source is the installation to back up.
type Source struct {
	DB      *db.DB
	Journal journal.Config
	DataDir string
	// Serving is true within the server, which has the journal open.
	Serving bool
	Version string
	// Settings identify the installation in the manifest; they hold no secrets.
	Settings map[string]any
	// Secrets are files by their name in the backup. Only encrypted backups contain
	// them; a missing file is left out.
	Secrets map[string]string
	// Made is called after each backup of the server; it may be nil.
	Made func(ctx context.Context, b schedule.Backup) error
}

// Options are the options of a backup.
type Options struct {
	// Recipients encrypt the backup; none leaves it in clear.
	Recipients []age.Recipient
	// BytesPerSecond bounds the rate of reading; 0 does not.
	BytesPerSecond int64
	// Progress is called with the bytes read and an estimate of all bytes; nil
	// reports nothing.
	Progress func(done, total int64)
	// Timeout bounds the time of a backup; 0 does not.
	Timeout time.Duration
	// Stall is the longest time in which the place may accept no data; 0 for ten
	// minutes.
	Stall time.Duration
	// Now is nil for time.Now.
	Now func() time.Time
}

// Result describes a complete backup.
type Result struct {
	Name     string
	Path     string
	Bytes    int64 // of the archive
	Took     time.Duration
	Manifest *archive.Manifest
}

// Names of the files in an archive.
const (
	fileDatabase = "database/guidon.db"
	fileJournal  = "journal/journal.db"
	fileTables   = "database/tables.json"
	tablePrefix  = "database/tables/"
	secretPrefix = "secrets/"
)

const defaultStall = 10 * time.Minute

// Create writes a backup to a place. An empty name generates one from the time. After
// an error nothing is at that name that was not there before.
//
// It fails with ErrRunning beside another one, with ErrTimeout, with ErrLowSpace, and
// with place.ErrStalled. A place that hangs delays neither Create nor the end of the
// transactions.
func Create(ctx context.Context, src Source, to place.Place, name string, o Options) (*Result, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Stall == 0 {
		o.Stall = defaultStall
	}
	lock, err := acquireLock(src.DataDir)
	if err != nil {
		return nil, err
	}
	defer releaseLock(lock)
	ctx, stop, err := guard(ctx, src, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	made, err := create(ctx, src, to, name, o)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // not an error that follows from it
	}
	return made, err
}

func create(ctx context.Context, src Source, to place.Place, name string, o Options) (*Result, error) {
	begin := o.Now()
	if name == "" {
		name = place.GeneratedName(begin)
	}
	s, err := openSnapshot(ctx, src)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f, err := place.CreateDetached(ctx, to, name, s.bytes(), o.Stall)
	if err != nil {
		return nil, fmt.Errorf("create the backup: %w", err)
	}
	out := &countingWriter{w: f}
	m, err := s.write(ctx, out, src, begin, o)
	s.Close() // the place may need time to commit
	if err != nil {
		f.Abort()
		return nil, fmt.Errorf("write the backup %s: %w", to.Path(name), err)
	}
	if err := f.Commit(ctx); err != nil {
		return nil, fmt.Errorf("write the backup %s: %w", to.Path(name), err)
	}
	return &Result{Name: name, Path: to.Path(name), Bytes: out.n, Took: o.Now().Sub(begin), Manifest: m}, nil
}

// databaseSnapshot is a database at one moment.
type databaseSnapshot interface {
	bytes() int64 // an estimate of what writeTo reads
	writeTo(ctx context.Context, a *archive.Writer, through func(io.Writer) io.Writer) error
	Close()
}

// snapshot is an installation at one moment.
type snapshot struct {
	database databaseSnapshot
	state    databaseState
	journal  *journalSnapshot // nil without a journal
}

// databaseState is what a backup records of the database.
type databaseState struct {
	steps   []int
	cursors []archive.Cursor
}

// contains reports whether a step of the schema is applied.
func (s *databaseState) contains(step int) bool { return slices.Contains(s.steps, step) }

// snapshotAttempts bounds the attempts to open both snapshots before retention of the
// journal removes a record between them.
const snapshotAttempts = 5

func openSnapshot(ctx context.Context, src Source) (s *snapshot, err error) {
	for range snapshotAttempts {
		if s, err = tryOpenSnapshot(ctx, src); !errors.Is(err, errGap) {
			break
		}
	}
	return s, err
}

func tryOpenSnapshot(ctx context.Context, src Source) (_ *snapshot, err error) {
	s := &snapshot{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	open := openSQLite
	if src.DB.Postgres() {
		open = openPostgres
	}
	if s.database, s.state, err = open(ctx, src.DB); err != nil {
		return nil, fmt.Errorf("open a snapshot of %s: %w", src.DB, err)
	}
	if s.journal, err = openJournal(ctx, src); err != nil {
		return nil, fmt.Errorf("open a snapshot of the journal: %w", err)
	}
	return s, s.checkGap()
}

var errGap = errors.New("retention removes records of the journal before they can be read: raise journal.max_bytes and journal.max_age")

// checkGap returns errGap if the journal lacks records that the database has not
// processed.
func (s *snapshot) checkGap() error {
	if s.journal == nil {
		return nil
	}
	for _, c := range s.state.cursors {
		if c.Journal == s.journal.info.ID && c.Seq+1 < s.journal.info.First && !s.journal.dropped[c.Name] {
			return errGap
		}
	}
	return nil
}

// Close ends the snapshots. A second call has no effect.
func (s *snapshot) Close() {
	if s.database != nil {
		s.database.Close()
		s.database = nil
	}
	if s.journal != nil {
		s.journal.Close()
		s.journal = nil
	}
}

// write writes the archive.
func (s *snapshot) write(ctx context.Context, out io.Writer, src Source, at time.Time, o Options) (*archive.Manifest, error) {
	done := make(chan struct{})
	var m *archive.Manifest
	var err error
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread keeps its priority and ends with the goroutine
		place.LowerPriority()
		m, err = s.writeArchive(ctx, out, src, at, o)
	}()
	<-done
	return m, err
}

func (s *snapshot) writeArchive(ctx context.Context, out io.Writer, src Source, at time.Time, o Options) (*archive.Manifest, error) {
	m := archive.Manifest{
		Header: archive.Header{Guidon: src.Version, Database: "sqlite", CreatedAt: at.UTC()},
		Steps:  s.state.steps, Cursors: s.state.cursors, Settings: src.Settings, LeftOut: []string{},
	}
	if src.DB.Postgres() {
		m.Database = "postgres"
	}
	if len(m.Steps) > 0 {
		m.Schema = slices.Max(m.Steps)
	}
	a, err := archive.NewWriter(out, m.Header, o.Recipients)
	if err != nil {
		return nil, err
	}
	if m.LeftOut, err = writeSecrets(a, src.Secrets, len(o.Recipients) > 0); err != nil {
		return nil, err
	}
	p := newPacer(ctx, s.bytes(), o)
	if s.journal != nil {
		m.Journal = &s.journal.info
		f := a.File(fileJournal)
		if err := errors.Join(s.journal.pages.copyTo(ctx, p.through(f)), f.Close()); err != nil {
			return nil, err
		}
		s.journal.Close()
		s.journal = nil
	}
	if err := s.database.writeTo(ctx, a, p.through); err != nil {
		return nil, err
	}
	return a.Finish(m)
}

func (s *snapshot) bytes() int64 {
	n := s.database.bytes()
	if s.journal != nil {
		n += s.journal.pages.bytes()
	}
	return n
}

// pacer limits the rate of reading and reports the progress.
type pacer struct {
	ctx         context.Context
	limit       *rate.Limiter // nil: no limit
	done, total int64
	report      func(done, total int64)
}

// paceBytes is the most that is read at once.
const paceBytes = 256 << 10

func newPacer(ctx context.Context, total int64, o Options) *pacer {
	p := &pacer{ctx: ctx, total: total, report: o.Progress}
	if o.BytesPerSecond > 0 {
		p.limit = rate.NewLimiter(rate.Limit(o.BytesPerSecond), paceBytes)
	}
	return p
}

func (p *pacer) through(w io.Writer) io.Writer { return &pacedWriter{p, w} }

type pacedWriter struct {
	*pacer
	w io.Writer
}

// Write writes at the rate of the pacer.
func (p *pacedWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		part := b[:min(len(b), paceBytes)]
		if p.limit != nil {
			if err := p.limit.WaitN(p.ctx, len(part)); err != nil {
				return n, err
			}
		}
		if err := p.ctx.Err(); err != nil {
			return n, err
		}
		var written int
		written, err = p.w.Write(part)
		n, b, p.done = n+written, b[len(part):], p.done+int64(written)
		if p.report != nil {
			p.report(p.done, max(p.total, p.done))
		}
	}
	return n, err
}

// countingWriter counts what it writes.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write writes p.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

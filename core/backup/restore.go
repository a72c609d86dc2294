package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/age"

	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
)

// Target is the installation to restore. No server may run on it.
type Target struct {
	Database db.Config
	Journal  journal.Config
	DataDir  string
	// Secrets are paths of files by their name in the backup. Existing files are kept.
	Secrets map[string]string
}

// RestoreOptions are the options of a restore.
type RestoreOptions struct {
	// Identities decrypt the backup.
	Identities []age.Identity
	// Force replaces a database and a journal that are there. Files are kept under
	// another name; the content of a PostgreSQL database is deleted.
	Force bool
	// Until ends the journal: later records are not processed. Zero: all are.
	Until time.Time
	// IgnoreJournal uses the journal of the backup although the one of the
	// installation goes further.
	IgnoreJournal bool
	// DryRun verifies the backup and the target and changes nothing.
	DryRun bool
	// Progress is called with the bytes of the content that were read and all of
	// them; nil reports nothing. It counts each of the two passes.
	Progress func(done, total int64)
}

// Restored describes a restore.
type Restored struct {
	Manifest *archive.Manifest
	// JournalFrom is "backup", "installation" or "none".
	JournalFrom string
	// First and Last are the records that the server will process at its start; Last
	// is before First if there are none.
	First, Last uint64
	// Until is when the last of them was received; zero without one.
	Until time.Time
	// Kept are the names under which replaced files were kept.
	Kept []string
	// Secrets are the files with secrets that were restored.
	Secrets []string
}

// ErrNotEmpty is the error of a target that holds data.
var ErrNotEmpty = errors.New("the target is not empty: --force replaces it and keeps its files under another name")

// Verify reads a whole backup and returns its manifest. The error satisfies
// errors.Is for the kinds of core/backup/archive.
func Verify(ctx context.Context, from place.Place, name string, identities []age.Identity, progress func(done, total int64)) (*archive.Manifest, error) {
	var done int64
	return walk(ctx, from, name, identities, func(_ archive.Header, _ string, content []byte) error {
		done += int64(len(content))
		if progress != nil {
			progress(done, 0)
		}
		return nil
	})
}

// walk reads a backup and calls part for each part.
func walk(ctx context.Context, from place.Place, name string, identities []age.Identity, part func(h archive.Header, file string, content []byte) error) (*archive.Manifest, error) {
	content, err := from.Open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open the backup: %w", err)
	}
	defer func() { _ = content.Close() }()
	r, err := archive.Open(readerWithContext{ctx, content}, identities)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.Path(name), err)
	}
	defer r.Close()
	m, err := r.Walk(func(file string, content []byte) error { return part(r.Header, file, content) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.Path(name), err)
	}
	return m, nil
}

// readerWithContext ends reading with a context.
type readerWithContext struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r readerWithContext) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Restore verifies a backup and puts it in the place of the target. It changes
// nothing before the whole backup is verified, fits this version and the target, and
// the files of the target are free. A restore that was interrupted later leaves a
// mark, which keeps servers from starting: see CheckComplete; it can be repeated with
// Force.
func Restore(ctx context.Context, target Target, from place.Place, name string, o RestoreOptions) (*Restored, error) {
	m, err := Verify(ctx, from, name, o.Identities, o.Progress)
	if err != nil {
		return nil, err
	}
	if err := checkFits(m, target); err != nil {
		return nil, err
	}
	lock, err := lockTarget(target, o.DryRun)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	r := &restore{Target: target, RestoreOptions: o, from: from, name: name, m: m, out: &Restored{Manifest: m}}
	if err := r.plan(ctx); err != nil {
		return nil, err
	}
	if o.DryRun {
		return r.out, nil
	}
	if err := r.run(ctx); err != nil {
		return nil, fmt.Errorf("restore %s: %w", from.Path(name), err)
	}
	return r.out, nil
}

// checkFits returns an error if this version or the target cannot take the backup.
func checkFits(m *archive.Manifest, t Target) error {
	dialect := "sqlite"
	if t.Database.Postgres() {
		dialect = "postgres"
	}
	if m.Database != dialect {
		return fmt.Errorf("the backup is of a %s database, and database.url names a %s database: a backup can be restored to the same kind only", m.Database, dialect)
	}
	known, err := t.Database.KnownSteps()
	if err != nil {
		return err
	}
	for _, step := range m.Steps {
		if !known[step] {
			return fmt.Errorf("the backup has schema %d, written by guidon %s, and this version does not know step %d of it: restore with a newer guidon", m.Schema, m.Guidon, step)
		}
	}
	return nil
}

// targetLock keeps servers away from the target.
type targetLock struct {
	lock    *journal.Lock
	backups *os.File
}

func lockTarget(t Target, dryRun bool) (targetLock, error) {
	if dryRun {
		return targetLock{}, nil
	}
	lock, err := journal.AcquireLock(t.Journal, t.DataDir)
	if errors.Is(err, journal.ErrLocked) {
		return targetLock{}, fmt.Errorf("a server runs on the target: stop it first: %w", err)
	}
	if err != nil {
		return targetLock{}, err
	}
	l := targetLock{lock: lock}
	if l.backups, err = acquireLock(t.DataDir); err != nil {
		l.release()
	}
	return l, err
}

func (l targetLock) release() {
	releaseLock(l.backups)
	if l.lock != nil {
		_ = l.lock.Release()
	}
}

package backup_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/backup"
	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/journal"
)

// hanging is a place whose files accept a number of bytes and then hang, whatever
// their context.
type hanging struct {
	place.Place
	accepts int
	created atomic.Bool
	release chan struct{}
	ended   chan struct{} // closed by Abort
}

func hangingAfter(t *testing.T, accepts int) *hanging {
	p, _ := local(t, t.TempDir()+"/")
	return &hanging{Place: p, accepts: accepts, release: make(chan struct{}), ended: make(chan struct{})}
}

func (h *hanging) Create(context.Context, string, int64) (place.File, error) {
	h.created.Store(true)
	return h, nil
}

func (h *hanging) Write(p []byte) (int, error) {
	if h.accepts -= len(p); h.accepts < 0 {
		<-h.release
	}
	return len(p), nil
}

func (h *hanging) Commit(context.Context) error { return nil }
func (h *hanging) Abort()                       { close(h.ended) }

// finish lets the place respond again and waits until the file is removed. On a slow
// machine a backup can end before it creates the file.
func (h *hanging) finish() {
	close(h.release)
	if h.created.Load() {
		<-h.ended
	}
}

// fill makes a database that a backup needs several writes for.
func fill(t *testing.T, i *installation) {
	t.Helper()
	const n = 4000
	records := make([]journal.Record, n)
	for k := range records {
		records[k].Seq = uint64(k + 1)
	}
	must(t, i.process(records))
}

// A place that hangs ends the backup. Its transactions end with it: the write-ahead log
// can be truncated, and rows can be removed from Postgres.
func TestHangingPlaceEndsTheBackup(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		fill(t, i)
		h := hangingAfter(t, 1000)
		defer h.finish()
		_, err := backup.Create(t.Context(), i.source(), h, "one", backup.Options{Stall: 200 * time.Millisecond})
		if !errors.Is(err, place.ErrStalled) {
			t.Fatalf("stalled: %v", err)
		}
		noTransactions(t, i)
	})
}

// noTransactions fails if a transaction of a backup is open.
func noTransactions(t *testing.T, i *installation) {
	t.Helper()
	if !i.db.Postgres() {
		var busy, log, moved int
		must(t, i.db.Write(t.Context()).QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved))
		if busy != 0 {
			t.Error("a read transaction is open")
		}
		return
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var n int
		must(t, i.db.Pool().QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()").Scan(&n))
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d transactions are open", n)
		}
	}
}

func TestTimeoutEndsTheBackup(t *testing.T) {
	t.Parallel()
	i := open(t, "", t.TempDir())
	fill(t, i)
	h := hangingAfter(t, 1000)
	_, err := backup.Create(t.Context(), i.source(), h, "one", backup.Options{Timeout: time.Second})
	if !errors.Is(err, backup.ErrTimeout) {
		t.Errorf("%v", err)
	}
	h.finish()
	dir := t.TempDir()
	p, name := local(t, filepath.Join(dir, "one"))
	if _, err = backup.Create(t.Context(), i.source(), p, name, backup.Options{Timeout: 200 * time.Millisecond, BytesPerSecond: 1000}); !errors.Is(err, backup.ErrTimeout) {
		t.Errorf("a slow backup: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v %v", entries, err)
	}
}

// A backup does not begin on a disk that would be too full for the journal.
func TestBackupLeavesSpaceForTheJournal(t *testing.T) {
	t.Parallel()
	i := open(t, "", t.TempDir())
	src := i.source()
	src.Journal.MinFreeBytes, src.Journal.MinFreePercent = math.MaxInt64/4, 100
	dir := t.TempDir()
	p, name := local(t, filepath.Join(dir, "one"))
	if _, err := backup.Create(t.Context(), src, p, name, backup.Options{}); !errors.Is(err, backup.ErrLowSpace) {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v %v", entries, err)
	}
}

// One backup of an installation runs at a time, and no restore beside it.
func TestOneBackupAtATime(t *testing.T) {
	t.Parallel()
	i := open(t, "", t.TempDir())
	fill(t, i)
	p, name := local(t, filepath.Join(t.TempDir(), "first"))
	_, err := backup.Create(t.Context(), i.source(), p, name, backup.Options{})
	must(t, err)
	h := hangingAfter(t, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	first, begun := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		_, err := backup.Create(ctx, i.source(), h, "one", backup.Options{Progress: func(int64, int64) {
			select {
			case begun <- struct{}{}:
			default:
			}
		}})
		first <- err
	}()
	<-begun
	if _, err := backup.Create(t.Context(), i.source(), p, "second", backup.Options{}); !errors.Is(err, backup.ErrRunning) {
		t.Errorf("a second backup: %v", err)
	}
	must(t, i.journal.Close(t.Context()))
	if _, err := backup.Restore(t.Context(), target("", i.dir), p, name, backup.RestoreOptions{Force: true}); !errors.Is(err, backup.ErrRunning) {
		t.Errorf("a restore: %v", err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first backup: %v", err)
	}
	h.finish()
	if _, err := backup.Create(t.Context(), i.source(), p, "second", backup.Options{}); err != nil {
		t.Errorf("a backup after it: %v", err)
	}
}

// The writer of a backup gets small pieces: the memory
// of a backup does not depend on the size of the database.
func TestMemoryOfABackupIsBounded(t *testing.T) {
	t.Parallel()
	i := open(t, "", t.TempDir())
	fill(t, i)
	p, _ := local(t, t.TempDir()+"/")
	largest := &largestWrite{Place: p}
	_, err := backup.Create(t.Context(), i.source(), largest, "one", backup.Options{})
	must(t, err)
	if largest.n == 0 || largest.n > 1<<20 {
		t.Errorf("the largest write has %d bytes", largest.n)
	}
}

// largestWrite discards files and keeps the size of the largest write.
type largestWrite struct {
	place.Place
	n int
}

func (l *largestWrite) Create(context.Context, string, int64) (place.File, error) { return l, nil }

func (l *largestWrite) Write(p []byte) (int, error) {
	l.n = max(l.n, len(p))
	return io.Discard.Write(p)
}

func (l *largestWrite) Commit(context.Context) error { return nil }
func (l *largestWrite) Abort()                       {}

package journal_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/journal"
)

var soak = flag.Duration("soak", 2*time.Second, "how long TestSpaceStaysFlat runs")

// TestSpaceStaysFlat appends and trims at full speed while three readers
// follow, one of them slowly. The files must find their size early and keep
// it, whatever goes through them.
func TestSpaceStaysFlat(t *testing.T) {
	const (
		producers = 32
		size      = 4000
		retention = 4 << 20
		least     = 120 << 20 // so much must go through for the test to mean something
		room      = retention + 2*journal.WALBytes + 16<<20
	)
	cfg := testConfig()
	cfg.MaxBytes, cfg.TrimInterval, cfg.TailBytes = retention, 20*time.Millisecond, 1<<20
	j := open(t, cfg, t.TempDir(), journal.Hooks{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for name, pause := range map[string]time.Duration{"fast": 0, "steady": time.Millisecond, "slow": 30 * time.Millisecond} {
		p, err := j.Register(ctx, name, journal.Begin)
		must(t, err)
		wg.Go(func() { followSlowly(ctx, t, j, name, p, pause) })
	}
	var written atomic.Int64
	for range producers {
		wg.Go(func() {
			data := make([]byte, size)
			_, _ = rand.Read(data)
			for ctx.Err() == nil {
				if _, err := j.Append(context.Background(), data); err != nil {
					t.Error(err)
					return
				}
				written.Add(size)
			}
		})
	}
	var sizes []int64
	begun := time.Now()
	for time.Since(begun) < *soak || written.Load() < least {
		time.Sleep(20 * time.Millisecond)
		sizes = append(sizes, stats(t, j).FileBytes)
		if time.Since(begun) > *soak+time.Minute {
			t.Fatalf("only %d bytes were written", written.Load())
		}
	}
	cancel()
	wg.Wait()
	third := len(sizes) / 3
	early, late := slices.Max(sizes[:2*third]), slices.Max(sizes[2*third:])
	t.Logf("%d MiB went through in %v; the files took at most %d MiB, then %d MiB",
		written.Load()>>20, time.Since(begun).Round(time.Second), early>>20, late>>20)
	if late > room {
		t.Errorf("the files take %d bytes, more than %d", late, int64(room))
	}
	if late > early+early/5 {
		t.Errorf("the files still grow: at most %d bytes first, %d later", early, late)
	}
	for _, r := range stats(t, j).Readers {
		if r.Dropped > 0 || r.Position.Count == 0 {
			t.Errorf("%s was handed %d records and lost %d", r.Name, r.Position.Count, r.Dropped)
		}
	}
}

// followSlowly reads and commits until ctx ends, with a pause after each time.
func followSlowly(ctx context.Context, t *testing.T, j journal.Journal, name string, p journal.Position, pause time.Duration) {
	for ctx.Err() == nil {
		records, err := j.Read(context.Background(), p.Seq, 4096, 16<<20)
		for i, r := range records {
			if r.Seq != p.Seq+1 {
				t.Errorf("%s: record %d after %d", name, r.Seq, p.Seq)
				return
			}
			p = journal.Position{Seq: r.Seq, Count: p.Count + 1}
			records[i] = journal.Record{}
		}
		if err == nil {
			err = j.Commit(context.Background(), name, p)
		}
		if err != nil {
			t.Error(err)
			return
		}
		_ = j.Wait(ctx, p.Seq)
		time.Sleep(pause)
	}
}

// TestALongReadDoesNotStopTheJournal holds a read transaction: the write-ahead log
// grows meanwhile and is short again after it ends.
func TestALongReadDoesNotStopTheJournal(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	cfg := testConfig()
	cfg.MaxBytes = 1 << 20
	j := open(t, cfg, dir, journal.Hooks{})
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data)
	add := func(megabytes int) {
		for range megabytes {
			_, err := j.Append(ctx, data)
			must(t, err)
			trim(t, j)
		}
	}
	add(1)
	db, err := sql.Open("sqlite", file(dir))
	must(t, err)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	must(t, err)
	var n int
	must(t, tx.QueryRowContext(ctx, "SELECT count(*) FROM blocks").Scan(&n))
	add(2 * journal.WALBytes >> 20)
	grown := stats(t, j).FileBytes
	must(t, tx.Rollback())
	eventually(t, "the log begins anew", func() bool {
		add(2)
		before := stats(t, j).FileBytes
		add(journal.WALBytes >> 20)
		return stats(t, j).FileBytes == before
	})
	if grown < 2*journal.WALBytes {
		t.Errorf("the log had only %d bytes: this test did not hold it", grown)
	}
}

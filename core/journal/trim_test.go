package journal_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/journal"
)

// watch is a clock that a test sets: the wall clock and the one that only runs.
type watch struct{ wall, run time.Duration }

func (w *watch) hook() (int64, time.Duration) {
	return (time.Duration(1_800_000_000)*time.Second + w.wall).Microseconds(), w.run
}

// pass lets both clocks run.
func (w *watch) pass(d time.Duration) { w.wall += d; w.run += d }

// jump sets the wall clock.
func (w *watch) jump(d time.Duration) { w.wall += d }

func fill(t testing.TB, j journal.Journal, n, size int) (last uint64) {
	t.Helper()
	for i := range n {
		data := make([]byte, size)
		copy(data, fmt.Sprint(i))
		var err error
		last, err = j.Append(context.Background(), data)
		must(t, err)
	}
	return last
}

func stats(t testing.TB, j journal.Journal) journal.Stats {
	t.Helper()
	s, err := j.Stats(context.Background())
	must(t, err)
	return s
}

func trim(t testing.TB, j journal.Journal) int64 {
	t.Helper()
	n, err := j.Trim(context.Background())
	must(t, err)
	return n
}

func TestRetentionBySizeKeepsTheNewest(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.MaxBytes = 10_000
	j := open(t, cfg, t.TempDir(), journal.Hooks{})
	fill(t, j, 2000, 100)
	if n := trim(t, j); n != 1900 {
		t.Errorf("removed %d of 2000 records of 100 bytes, want 1900", n)
	}
	if s := stats(t, j); s.Bytes != 10_000 || s.First != 1901 || s.Last != 2000 {
		t.Errorf("kept %d bytes from %d to %d", s.Bytes, s.First, s.Last)
	}
}

func TestRetentionByAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(w *watch, j journal.Journal)
		want int64
	}{
		{"nothing is old enough", func(w *watch, _ journal.Journal) { w.pass(59 * time.Minute) }, 0},
		{"everything is too old", func(w *watch, _ journal.Journal) { w.pass(61 * time.Minute) }, 3},
		{"a leap of the clock is not believed at once", func(w *watch, j journal.Journal) {
			w.jump(24 * time.Hour)
			w.pass(10 * time.Minute)
		}, 0},
		{"a leap that stays is a correction", func(w *watch, j journal.Journal) {
			w.jump(24 * time.Hour)
			trim(t, j)
			w.pass(61 * time.Minute)
		}, 3},
		{"a leap that was undone never happened", func(w *watch, j journal.Journal) {
			w.jump(24 * time.Hour)
			trim(t, j)
			w.jump(-24 * time.Hour)
			w.pass(50 * time.Minute)
		}, 0},
		{"a clock that was set back keeps records longer", func(w *watch, j journal.Journal) {
			w.jump(-24 * time.Hour)
			trim(t, j)
			w.pass(50 * time.Minute)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			cfg.MaxAge = time.Hour
			w := &watch{run: time.Second}
			j := open(t, cfg, t.TempDir(), journal.Hooks{Clock: w.hook})
			fill(t, j, 3, 10)
			c.do(w, j)
			if n := trim(t, j); n != c.want {
				t.Errorf("removed %d records, want %d", n, c.want)
			}
		})
	}
}

// TestRetentionAfterAClockWasAhead appends while the clock is ahead by days: the
// records behind have right stamps, and retention by age removes all when they are old.
func TestRetentionAfterAClockWasAhead(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.MaxAge = time.Hour
	w := &watch{run: time.Second}
	j := open(t, cfg, t.TempDir(), journal.Hooks{Clock: w.hook})
	fill(t, j, 1, 10)
	w.jump(40 * 24 * time.Hour)
	fill(t, j, 600, 10) // more than one step of retention reads
	w.jump(-40 * 24 * time.Hour)
	w.pass(time.Minute)
	fill(t, j, 2, 10)
	var at []time.Time
	each(t, j, func(r journal.Record) { at = append(at, r.At) })
	if got := at[602].Sub(at[0]); got != time.Minute || at[300].Sub(at[0]) < 39*24*time.Hour {
		t.Errorf("the last record is stamped %s after the first, one of the leap %s", got, at[300].Sub(at[0]))
	}
	w.pass(30 * time.Minute)
	if n := trim(t, j); n != 0 {
		t.Errorf("removed %d records that are half an hour old", n)
	}
	w.pass(31 * time.Minute)
	if n := trim(t, j); n != 603 {
		t.Errorf("removed %d records, want all 603", n)
	}
}

// TestRetentionOfAJournalThatBeginsAhead has no record with a right stamp before those of the leap.
func TestRetentionOfAJournalThatBeginsAhead(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.MaxAge = time.Hour
	w := &watch{run: time.Second}
	j := open(t, cfg, t.TempDir(), journal.Hooks{Clock: w.hook})
	w.jump(40 * 24 * time.Hour)
	fill(t, j, 300, 10) // more than one step of retention reads
	w.jump(-40 * 24 * time.Hour)
	if n := trim(t, j); n != 0 {
		t.Errorf("removed %d records, all of which are ahead", n)
	}
	fill(t, j, 1, 10) // its time is the best guess for all of them
	w.pass(50 * time.Minute)
	if n := trim(t, j); n != 0 {
		t.Errorf("removed %d records that are 50 minutes old", n)
	}
	fill(t, j, 1, 10)
	w.pass(11 * time.Minute)
	if n := trim(t, j); n != 301 {
		t.Errorf("removed %d records, want the 301 that are older than an hour", n)
	}
}

// The log says once that retention fails, and once that it works again.
func TestFailingRetentionIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	var failures atomic.Int64
	logged, logs := observer.New(zap.InfoLevel)
	cfg := testConfig()
	cfg.MaxBytes, cfg.TrimInterval = 1, time.Millisecond
	j, err := journal.OpenHooked(cfg, t.TempDir(), zap.New(logged), nil, journal.Hooks{BeforeCommit: func(appends int) error {
		if appends == 0 && broken.Load() {
			failures.Add(1)
			return errors.New("input/output error")
		}
		return nil
	}})
	must(t, err)
	fill(t, j, 1, 10)
	eventually(t, "retention removes a record", func() bool { return stats(t, j).Records == 0 })
	if n := logs.Len(); n != 0 {
		t.Errorf("retention that works logs %v", logs.All())
	}

	broken.Store(true)
	fill(t, j, 1, 10)
	eventually(t, "retention fails a few times", func() bool { return failures.Load() >= 3 })
	broken.Store(false)
	eventually(t, "retention removes the second record", func() bool { return stats(t, j).Records == 0 })
	eventually(t, "retention logs that it works", func() bool { return logs.FilterMessageSnippet("works again").Len() > 0 })
	must(t, j.Close(context.Background())) // is no failure of retention
	if failed := logs.FilterMessageSnippet("retention failed").Len(); failed != 1 || logs.Len() != 2 {
		t.Errorf("logged %v, want one failure and one end of it", logs.All())
	}
}

func TestTimeStandsStillWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	w, dir := &watch{}, t.TempDir()
	j := open(t, testConfig(), dir, journal.Hooks{Clock: w.hook})
	fill(t, j, 1, 1)
	w.jump(-time.Hour)
	fill(t, j, 1, 1)
	must(t, j.Close(context.Background()))
	j = open(t, testConfig(), dir, journal.Hooks{Clock: w.hook})
	fill(t, j, 1, 1)
	w.jump(2 * time.Hour)
	fill(t, j, 1, 1)
	var at []time.Time
	each(t, j, func(r journal.Record) { at = append(at, r.At) })
	if !at[1].Equal(at[0]) || at[0].Sub(at[2]) != time.Hour || at[3].Sub(at[0]) != time.Hour {
		t.Errorf("records are stamped %v", at)
	}
}

func TestDroppedRecordsAreCounted(t *testing.T) {
	t.Parallel()
	cfg, dir := testConfig(), t.TempDir()
	cfg.MaxBytes, cfg.DropUnread = 1000, true
	j := open(t, cfg, dir, journal.Hooks{})
	ctx := context.Background()
	for _, reader := range []string{"ahead", "behind"} {
		_, err := j.Register(ctx, reader, journal.Begin)
		must(t, err)
	}
	fill(t, j, 20, 100)
	must(t, j.Commit(ctx, "ahead", journal.Position{Seq: 8, Count: 8}))
	trim(t, j)
	fill(t, j, 5, 100)
	trim(t, j)
	must(t, j.Close(ctx))
	j = open(t, cfg, dir, journal.Hooks{})
	s := stats(t, j)
	if s.First != 16 || s.Readers[0].Dropped != 7 || s.Readers[1].Dropped != 15 {
		t.Errorf("first %d; ahead lost %d, want 7; behind lost %d, want 15", s.First, s.Readers[0].Dropped, s.Readers[1].Dropped)
	}
	if lag := s.Readers[1].Lag; lag != 10 {
		t.Errorf("behind lags %d records, want the 10 that are kept", lag)
	}
	p, err := j.Register(ctx, "behind", journal.Begin)
	must(t, err)
	records, err := j.Read(ctx, p.Seq, 100, 1<<20)
	must(t, err)
	if len(records) != 10 || records[0].Seq != 16 {
		t.Errorf("read %d records, want the 10 from number 16 on", len(records))
	}
	must(t, j.Commit(ctx, "behind", journal.Position{Seq: 3, Count: 3})) // was read before it was dropped
}

// A reader that waits for records which were all dropped must not spin.
func TestWaitIgnoresDroppedRecords(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.MaxBytes, cfg.DropUnread = 1, true
	j := open(t, cfg, t.TempDir(), journal.Hooks{})
	last := fill(t, j, 5, 100)
	trim(t, j)
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := j.Wait(short, last-3); err == nil {
		t.Error("wait returned although no record is kept")
	}
}

// A backlog makes the file large. When it is gone the disk gets the space
// back, while appends go on.
func TestFileShrinksAfterABacklog(t *testing.T) {
	cfg, dir := testConfig(), t.TempDir()
	cfg.MaxBytes = 4 << 20
	j := open(t, cfg, dir, journal.Hooks{})
	ctx := context.Background()
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data)
	for range 140 {
		_, err := j.Append(ctx, data)
		must(t, err)
	}
	trim(t, j)
	size := func() int64 {
		info, err := os.Stat(file(dir))
		must(t, err)
		return info.Size()
	}
	if size() < 120<<20 {
		t.Fatalf("the file has %d bytes: this test needs a larger backlog", size())
	}
	eventually(t, "the file is small again", func() bool {
		trim(t, j)
		must(t, journal.Shrink(j))
		_, err := j.Append(ctx, data[:1000])
		must(t, err)
		return size() < 80<<20 // what is kept, and free space that is not worth the work
	})

	// What is left is reused by new records, and not worth the work.
	for range 20 {
		must(t, journal.Shrink(j))
	}
	if size() < 24<<20 {
		t.Errorf("the file has %d bytes: it was shrunk further than is useful", size())
	}
	each(t, j, func(r journal.Record) {
		if !bytes.HasPrefix(data, r.Data) {
			t.Fatalf("record %d has changed", r.Seq)
		}
	})
}

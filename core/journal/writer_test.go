package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// gate blocks the writer before each commit until the test releases it, and
// reports the number of appends of each commit.
type gate struct {
	arrived chan int
	pass    chan struct{}
}

func newGate() *gate { return &gate{arrived: make(chan int, 100), pass: make(chan struct{}, 100)} }

func (g *gate) hook(appends int) error {
	g.arrived <- appends
	<-g.pass
	return nil
}

// hold appends one record and returns when the writer stands before its
// commit. The result comes through the channel.
func (g *gate) hold(t *testing.T, j journal.Journal) chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := j.Append(context.Background(), []byte("held"))
		done <- err
	}()
	<-g.arrived
	return done
}

// eventually polls until ok, and fails after a while.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

func waiting(t testing.TB, j journal.Journal, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d requests in line", n), func() bool { return journal.Waiting(j) == n })
}

// appendMany appends n records at once and returns their results.
func appendMany(j journal.Journal, n int) (errs []error, wait func()) {
	errs = make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, errs[i] = j.Append(context.Background(), fmt.Appendf(nil, "%d", i)) })
	}
	return errs, wg.Wait
}

func TestWaitingAppendsShareACommit(t *testing.T) {
	t.Parallel()
	g := newGate()
	j := open(t, testConfig(), t.TempDir(), journal.Hooks{BeforeCommit: g.hook})
	first := g.hold(t, j)
	errs, wait := appendMany(j, 64)
	waiting(t, j, 64)
	g.pass <- struct{}{}
	if n := <-g.arrived; n != 64 {
		t.Errorf("the second commit carries %d appends, want 64", n)
	}
	g.pass <- struct{}{}
	wait()
	if err := errors.Join(append(errs, <-first)...); err != nil {
		t.Error(err)
	}
}

func TestGroupsKeepToTheirLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		records, bytes int
		want           []int
		size           int
	}{
		{name: "records", records: 5, bytes: 1 << 20, size: 10, want: []int{5, 5, 2}},
		{name: "bytes", records: 100, bytes: 4000, size: 1000, want: []int{4, 4, 4}},
		{name: "one record always fits", records: 100, bytes: 100, size: 1000, want: slices.Repeat([]int{1}, 12)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			cfg := testConfig()
			cfg.MaxGroupRecords, cfg.MaxGroupBytes = c.records, c.bytes
			j := open(t, cfg, t.TempDir(), journal.Hooks{BeforeCommit: g.hook})
			first := g.hold(t, j)
			var wg sync.WaitGroup
			for range 12 {
				wg.Go(func() {
					if _, err := j.Append(context.Background(), make([]byte, c.size)); err != nil {
						t.Error(err)
					}
				})
			}
			waiting(t, j, 12)
			g.pass <- struct{}{}
			var got []int
			for range c.want {
				got = append(got, <-g.arrived)
				g.pass <- struct{}{}
			}
			wg.Wait()
			if err := <-first; err != nil || !slices.Equal(got, c.want) {
				t.Errorf("groups of %v, want %v (error %v)", got, c.want, err)
			}
		})
	}
}

func TestFullQueueRefuses(t *testing.T) {
	t.Parallel()
	g := newGate()
	cfg := testConfig()
	cfg.MaxQueueRecords, cfg.MaxQueueBytes = 4, 1000
	j := open(t, cfg, t.TempDir(), journal.Hooks{BeforeCommit: g.hook})
	first := g.hold(t, j)
	errs, wait := appendMany(j, 4)
	waiting(t, j, 4)
	_, err := j.Append(context.Background(), []byte("one too many"))
	if f := fault.From(err); f == nil || f.Kind != fault.Unavailable || f.Code != "journal_saturated" || f.RetryAfter <= 0 {
		t.Errorf("got %v, want Unavailable journal_saturated with a time to come back", err)
	}
	g.pass <- struct{}{}
	<-g.arrived
	g.pass <- struct{}{}
	wait()
	if err := errors.Join(append(errs, <-first)...); err != nil {
		t.Errorf("those who were in line: %v", err)
	}
	held := g.hold(t, j)
	go func() { _, _ = j.Append(context.Background(), make([]byte, 900)) }()
	waiting(t, j, 1)
	if _, err := j.Append(context.Background(), make([]byte, 200)); fault.From(err).Code != "journal_saturated" {
		t.Errorf("too many bytes: got %v, want journal_saturated", err)
	}
	g.pass <- struct{}{}
	g.pass <- struct{}{}
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// A record that is larger than the queue may be is taken while nothing else waits.
func TestALargeRecordFitsAnEmptyQueue(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.MaxQueueBytes = 100
	j := open(t, cfg, t.TempDir(), journal.Hooks{})
	for range 2 {
		if _, err := j.Append(context.Background(), make([]byte, 101)); err != nil {
			t.Error(err)
		}
	}
}

func TestTooLargeARecordIsRefused(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.MaxRecordBytes = 10
	j := open(t, cfg, t.TempDir(), journal.Hooks{})
	if _, err := j.Append(context.Background(), make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if _, err := j.Append(context.Background(), make([]byte, 11)); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("got %v, want TooLarge", err)
	}
}

func TestContextEndsWhileInLine(t *testing.T) {
	t.Parallel()
	g := newGate()
	j := open(t, testConfig(), t.TempDir(), journal.Hooks{BeforeCommit: g.hook})
	first := g.hold(t, j)
	ctx, cancel := context.WithCancel(context.Background())
	taken := make(chan error, 1)
	go func() {
		_, err := j.Append(ctx, []byte("taken back"))
		taken <- err
	}()
	waiting(t, j, 1)
	cancel()
	if err := <-taken; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	waiting(t, j, 0)
	g.pass <- struct{}{}
	if err := <-first; err != nil {
		t.Error(err)
	}
	if s, err := j.Stats(context.Background()); err != nil || s.Records != 1 {
		t.Errorf("%d records, want only the first one (%v)", s.Records, err)
	}
}

func TestContextEndsWhileBeingWritten(t *testing.T) {
	t.Parallel()
	g := newGate()
	j := open(t, testConfig(), t.TempDir(), journal.Hooks{BeforeCommit: g.hook})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := j.Append(ctx, []byte("too late to take back"))
		done <- err
	}()
	<-g.arrived
	cancel()
	select {
	case err := <-done:
		t.Fatalf("answered %v before the outcome was known", err)
	case <-time.After(20 * time.Millisecond):
	}
	g.pass <- struct{}{}
	if err := <-done; err != nil {
		t.Errorf("the record is on disk, yet the answer is %v", err)
	}
}

func TestCloseWaitsForThoseInLine(t *testing.T) {
	t.Parallel()
	g := newGate()
	dir := t.TempDir()
	j := open(t, testConfig(), dir, journal.Hooks{BeforeCommit: g.hook})
	first := g.hold(t, j)
	errs, wait := appendMany(j, 3)
	waiting(t, j, 3)
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := j.Close(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: got %v, want context.DeadlineExceeded", err)
	}
	if _, err := j.Append(context.Background(), nil); fault.From(err).Code != "journal_closing" {
		t.Errorf("append while closing: got %v, want journal_closing", err)
	}
	g.pass <- struct{}{}
	g.pass <- struct{}{}
	wait()
	if err := errors.Join(append(errs, <-first, j.Close(context.Background()))...); err != nil {
		t.Error(err)
	}
	again := open(t, testConfig(), dir, journal.Hooks{})
	if s, err := again.Stats(context.Background()); err != nil || s.Records != 4 {
		t.Errorf("%d records after reopening, want 4 (%v)", s.Records, err)
	}
}

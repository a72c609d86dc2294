package ingestion_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/reader"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// follower records committed events in order, as stage does.
type follower struct {
	stage
	deaf atomic.Bool // wants nothing
}

func (f *follower) Name() string       { return "test" }
func (f *follower) Accepts(int64) bool { return !f.deaf.Load() }
func (f *follower) Prepare(_ context.Context, batch []*sdk.Event) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return f.Process(ctx, batch) }, nil
}

var away = fault.New(fault.Unavailable, "away", "Not now.")

func startFollowing(t *testing.T, j reader.Log, d *db.DB, w *pipeline.Worker, f pipeline.Follower) *pipeline.FollowerRunner {
	t.Helper()
	following := pipeline.NewFollowerRunner(w, f)
	if err := following.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopFollowing(t, following) })
	return following
}

func stopFollowing(t *testing.T, f *pipeline.FollowerRunner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestFollowerReceivesNewEventsInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		accept(t, j, "before it was there")
		w := startWorker(t, workerConfig(), j, d, nil)
		f := &follower{stage: stage{db: d}}
		startFollowing(t, j, d, w, f)
		var want []string
		for i := range 30 {
			want = append(want, fmt.Sprint("e", i))
			accept(t, j, want[i])
		}
		eventually(t, "all in order", func() bool { return slices.Equal(f.list(), want) })
		eventually(t, "the journal is told", func() bool {
			p, err := j.Register(context.Background(), "follower/test", journal.Begin)
			return err == nil && p.Seq == 31
		})
	})
}

// A follower finds each event stored.
func TestFollowerStaysBehindTheWorker(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		s := &stage{db: d, fail: func([]*sdk.Event) error { return away }}
		w := startWorker(t, workerConfig(), j, d, nil, s)
		var early atomic.Bool
		f := &follower{stage: stage{db: d}}
		f.fail = func([]*sdk.Event) error {
			if s.seen() == "" {
				early.Store(true)
			}
			return nil
		}
		startFollowing(t, j, d, w, f)
		accept(t, j, "a")
		eventually(t, "the worker tried", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.calls > 3 })
		if f.seen() != "" {
			t.Fatal("the follower was first")
		}
		s.failing(nil)
		eventually(t, "both have it", func() bool { return s.seen() == "a" && f.seen() == "a" })
		if early.Load() {
			t.Error("the follower was called first")
		}
	})
}

func TestFollowerContinuesFromItsCursor(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		w := startWorker(t, workerConfig(), j, d, nil)
		f := &follower{stage: stage{db: d}}
		first := startFollowing(t, deaf{j}, d, w, f) // the journal never hears how far it came
		accept(t, j, "a", "b")
		eventually(t, "the first two", func() bool { return f.seen() == "a b" })
		stopFollowing(t, first)
		accept(t, j, "c")
		startFollowing(t, j, d, w, f)
		eventually(t, "the third", func() bool { return f.seen() == "a b c" })
	})
}

func TestFailingFollowerDoesNotDelayTheWorker(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	s := &stage{db: d}
	w := startWorker(t, workerConfig(), j, d, nil, s)
	f := &follower{stage: stage{db: d}}
	var broken atomic.Bool
	broken.Store(true)
	f.fail = func(batch []*sdk.Event) error {
		for _, e := range batch {
			switch {
			case broken.Load():
				return away
			case e.Name == "poison":
				return errors.New("I cannot take this")
			case e.Name == "panic":
				panic("no idea what this is")
			}
		}
		return nil
	}
	startFollowing(t, j, d, w, f)
	accept(t, j, "a", "poison", "b", "panic", "c")
	eventually(t, "the worker has all", func() bool { return strings.HasSuffix(s.seen(), "c") })
	broken.Store(false)
	eventually(t, "the follower has what it can take", func() bool { return f.seen() == "a b c" })
}

func TestFollowerWithoutEventsMovesItsCursor(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	w := startWorker(t, workerConfig(), j, d, nil)
	f := &follower{stage: stage{db: d}}
	f.deaf.Store(true)
	startFollowing(t, j, d, w, f)
	for i := range 5 {
		accept(t, j, fmt.Sprint("e", i))
	}
	eventually(t, "the cursor moves", func() bool {
		p, err := j.Register(context.Background(), "follower/test", journal.Begin)
		return err == nil && p.Seq == 5
	})
	f.deaf.Store(false)
	accept(t, j, "now")
	eventually(t, "what is wanted comes", func() bool { return f.seen() == "now" })
}

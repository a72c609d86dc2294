package ingestion_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// startFenced starts a worker under a lease, as another node would.
func startFenced(t *testing.T, j reader.Log, d *db.DB, token int64, fenced func(), stages ...pipeline.Stage) *pipeline.Worker {
	t.Helper()
	cfg := workerConfig()
	data, known := dataStages(t, d)
	w, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, j, d, append(slices.Clone(stages), data...), known,
		pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	w.Fence(token, fenced)
	if err := w.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWorker(t, w) })
	return w
}

// pausing is a stage that stops at one batch, as a process does that receives
// SIGSTOP, until the test continues it.
func pausing(reached chan<- struct{}, proceed <-chan struct{}) pipeline.Stage {
	return namedStage{"pausing", func(context.Context, []*sdk.Event) error {
		select {
		case reached <- struct{}{}:
		default:
		}
		<-proceed
		return nil
	}}
}

// A worker that is paused in the middle of a batch, loses its partition meanwhile and
// continues commits nothing of the batch; nor does its follower.
func TestPausedWorkerIsFenced(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		accept(t, j, `{"event":"first","distinct_id":"anon","properties":{"$set":{"a":1}}}`)
		reached, proceed := make(chan struct{}, 1), make(chan struct{})
		var fenced atomic.Int32
		older := startFenced(t, j, d, 7, func() { fenced.Add(1) }, pausing(reached, proceed))
		oldFollower, newFollower := &follower{stage: stage{db: d}}, &follower{stage: stage{db: d}}
		oldFollowing := startFollowing(t, j, d, older, oldFollower)
		<-reached
		proceed <- struct{}{}
		eventually(t, "the first event", func() bool { return older.Status().Position.Seq == 1 })

		accept(t, j, `{"event":"$identify","distinct_id":"alice","properties":{"$anon_distinct_id":"anon","$set":{"b":2}}}`, "second")
		<-reached // paused in the transaction
		successor := startFenced(t, j, d, 8, nil)
		startFollowing(t, j, d, successor, newFollower)
		if d.Postgres() { // SQLite has one writer: the takeover waits for the transaction
			eventually(t, "the successor has the batch", func() bool { return successor.Status().Position.Seq == 2 })
		}
		close(proceed)
		eventually(t, "the takeover", func() bool { return successor.Status().Position.Seq == 2 })
		accept(t, j, "third")
		eventually(t, "the successor has everything", func() bool { return successor.Status().Position.Seq == 3 })
		eventually(t, "the older worker notices", func() bool { return fenced.Load() == 1 })
		stopFollowing(t, oldFollowing)
		eventually(t, "the follower of the successor", func() bool { return strings.HasSuffix(newFollower.seen(), "third") })

		var stored, different int
		row := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT uuid) FROM events")
		if err := row.Scan(&stored, &different); err != nil || stored != 4 || different != 4 {
			t.Errorf("%d events are stored, %d different ones, of 4: %v", stored, different, err)
		}
		if got := letters(t, d); got != "" {
			t.Errorf("dead letters: %s", got)
		}
		seen := strings.TrimSpace(oldFollower.seen() + " " + newFollower.seen())
		if n := strings.Count(seen, "third"); n != 1 || strings.Count(seen, "second") > 1 {
			t.Errorf("followers saw %q", seen)
		}
		p := person(t, persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil), "anon")
		if len(p.DistinctIDs) != 2 || !strings.Contains(string(p.Properties), `"b":2`) {
			t.Errorf("the person is %+v", p)
		}
	})
}

// A worker under an old lease does not begin.
func TestOldLeaseDoesNotStart(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		accept(t, j, "one")
		newer := startFenced(t, j, d, 8, nil)
		eventually(t, "the event", func() bool { return newer.Status().Position.Seq == 1 })
		var fenced atomic.Int32
		older := startFenced(t, j, d, 7, func() { fenced.Add(1) }, namedStage{"never", func(context.Context, []*sdk.Event) error {
			t.Error("the older worker ran a stage")
			return nil
		}})
		eventually(t, "the older worker stops", func() bool { return fenced.Load() == 1 && older.Status().Waiting != nil })
		accept(t, j, "two")
		eventually(t, "the second event", func() bool { return newer.Status().Position.Seq == 2 })
	})
}

// A node without a lease continues from the cursor that the database has after it was
// restored, and stores nothing twice.
func TestWorkerContinuesFromARestoredCursor(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		accept(t, j, "a", "b")
		accept(t, j, "c")
		cfg := workerConfig()
		core, logs := observer.New(zapcore.WarnLevel)
		s := &stage{db: d}
		data, known := dataStages(t, d)
		w, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, j, d, append(data, s), known, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.New(core))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stopWorker(t, w) })
		eventually(t, "all events", func() bool { return w.Status().Position.Seq == 2 })
		if _, err := d.Write(t.Context()).ExecContext(t.Context(), "UPDATE ingestion_cursors SET seq = 0, idx = 1, count = 1 WHERE name = 'worker'"); err != nil {
			t.Fatal(err)
		}
		accept(t, j, "d")
		eventually(t, "the new event", func() bool { return strings.HasSuffix(s.seen(), "d") })
		if got := s.seen(); got != "a b c d" {
			t.Errorf("processed %q", got)
		}
		eventually(t, "the cursor", func() bool {
			var seq int64
			row := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT seq FROM ingestion_cursors WHERE name = 'worker'")
			return row.Scan(&seq) == nil && seq == 3
		})
		if logs.FilterMessageSnippet("cursor in the database was moved").Len() == 0 {
			t.Error("no log line about the cursor")
		}
	})
}

// A batch that was committed although its commit failed is not processed again.
func TestWorkerFindsALostCommit(t *testing.T) {
	t.Parallel()
	d, j := dbtest.Postgres(t), openJournal(t, t.TempDir())
	accept(t, j, "one")
	var calls atomic.Int32
	lost := namedStage{"lost", func(ctx context.Context, batch []*sdk.Event) error {
		if calls.Add(1) == 2 { // the first attempt has committed, and its answer was lost
			_, err := d.Write(context.Background()).ExecContext(context.Background(),
				fmt.Sprintf("UPDATE ingestion_cursors SET seq = 2, count = %d WHERE name = 'worker'", 1+len(batch)))
			return err
		}
		return nil
	}}
	w := startWorker(t, workerConfig(), j, d, nil, lost)
	eventually(t, "the first event", func() bool { return w.Status().Position.Seq == 1 })
	accept(t, j, "two", "three")
	eventually(t, "the batch", func() bool { return w.Status().Position.Seq == 2 })
	accept(t, j, "four")
	eventually(t, "the last event", func() bool { return w.Status().Position.Seq == 3 })
	if calls.Load() != 3 {
		t.Errorf("%d batches, want 3", calls.Load())
	}
}

// Two servers without leases, each with its own journal, write the same row: none waits
// for the other.
func TestWorkersOfTwoJournals(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		one, two := openJournal(t, t.TempDir()), openJournal(t, t.TempDir())
		cfg := workerConfig()
		cfg.Worker.RetryMax = time.Hour // the pause of a reader that is fenced
		a, b := startWorker(t, cfg, one, d, nil), startWorker(t, cfg, two, d, nil)
		for seq := uint64(1); seq <= 5; seq++ {
			accept(t, one, fmt.Sprintf("one-%d", seq))
			eventually(t, "the first server", func() bool { return a.Status().Position.Seq == seq })
			accept(t, two, fmt.Sprintf("two-%d", seq))
			eventually(t, "the second server", func() bool { return b.Status().Position.Seq == seq })
		}
	})
}

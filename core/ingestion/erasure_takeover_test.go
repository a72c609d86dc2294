package ingestion_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/persons"
)

// blockedRemovals are removals of which each waits for proceed.
type blockedRemovals struct {
	removals
	reached, proceed chan struct{}
}

func (r *blockedRemovals) Remove(ctx context.Context, one *persons.Removal) error {
	select {
	case r.reached <- struct{}{}:
	default:
	}
	<-r.proceed
	return r.removals.Remove(ctx, one)
}

// startBlockedErasure starts a node whose erasure of a distinct id is deleting until
// proceed is called.
func startBlockedErasure(t *testing.T, d *db.DB, log eventlog.Log, id string) (s *erasure.Service, p *blockedRemovals, proceed func()) {
	t.Helper()
	p = &blockedRemovals{reached: make(chan struct{}, 1), proceed: make(chan struct{})}
	s = startErasuresOnLog(t, d, log, p)
	erased := make(chan error, 1)
	go func() {
		erased <- s.Erase(context.Background(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{id}, Events: true})
	}()
	open := true
	proceed = func() {
		if !open {
			return
		}
		open = false
		close(p.proceed)
		if err := <-erased; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(proceed)
	<-p.reached
	return s, p, proceed
}

// A node that is deleting the data of a person processes partitions that it takes over
// meanwhile, also those with the record of that erasure.
func TestErasureDoesNotBlockTakeover(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		log := ingestiontest.NewMemoryLog(12)
		acceptOnLog(t, log, "before", "u")
		acceptOnLog(t, log, "other", "v")
		e, p, proceed := startBlockedErasure(t, d, log, "u")
		s := &stage{db: d}
		for _, id := range []string{"u", "v"} {
			startPartition(t, d, log, eventlog.PartitionOf(1, id, 12), e, nil, s)
		}
		acceptOnLog(t, log, "after", "u")
		eventually(t, "events during the erasure", func() bool {
			got := s.list()
			return slices.Contains(got, "other") && slices.Contains(got, "after")
		})
		if slices.Contains(s.list(), "before") {
			t.Error("an erased event was processed")
		}
		if n := len(p.list()); n != 0 {
			t.Errorf("%d erasures ended", n)
		}
		proceed()
		if n := len(p.list()); n != 1 {
			t.Errorf("%d removals of one erasure", n)
		}
		var ids string
		if err := d.Read(t.Context()).NewRaw("SELECT distinct_ids FROM erasures").Scan(t.Context(), &ids); err != nil || ids != "[]" {
			t.Errorf("a carried out erasure has the distinct ids %s: %v", ids, err)
		}
	})
}

// A node that takes a partition over between the record of an erasure and its marks writes
// the marks of this partition. It does not answer the request: in other partitions events
// are processed that do not know the erasure.
func TestTakeoverDoesNotEndErasure(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	log, p := ingestiontest.NewMemoryLog(2), &removals{}
	here, there := startErasuresOnLog(t, d, log, p), erasure.New(d, nil, p, zap.NewNop())
	there.OnLog(log)
	reached, proceed := make(chan struct{}, 1), make(chan struct{})
	startPartition(t, d, log, eventlog.PartitionOf(1, "u", 2), there, nil, pausing(reached, proceed), &stage{db: d})
	acceptOnLog(t, log, "running", "u")
	<-reached // a transaction that the marks wait for
	erased := make(chan error, 1)
	go func() {
		erased <- here.Erase(context.Background(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true})
	}()
	for i := range log.Partitions() {
		eventually(t, "the record of the erasure", func() bool { return slices.ContainsFunc(log.Records(i), event.IsErasure) })
	}
	taker := erasure.New(d, nil, p, zap.NewNop())
	taker.OnLog(log)
	if !taker.Partition(1-eventlog.PartitionOf(1, "u", 2)).Recover(t.Context(), 0) {
		t.Fatal("not recovered")
	}
	var done, marks int
	row := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM erasures WHERE done_at IS NOT NULL), (SELECT count(*) FROM erased_ids)")
	if err := row.Scan(&done, &marks); err != nil || done != 0 || marks != 1 || len(p.list()) != 0 {
		t.Errorf("%d erasures are done, with %d marks and the removals %+v: %v", done, marks, p.list(), err)
	}
	close(proceed)
	if err := <-erased; err != nil {
		t.Fatal(err)
	}
	if n := len(p.list()); n != 1 {
		t.Errorf("%d removals of one erasure", n)
	}
}

// The recovery of an erasure that the database does not know waits for the one that is
// carried out, and a drain ends the wait.
func TestDrainEndsRecovery(t *testing.T) {
	t.Parallel()
	d, log := dbtest.SQLite(t), ingestiontest.NewMemoryLog(2)
	lost := startErasuresOnLog(t, dbtest.SQLite(t), log, &removals{}) // of a database that is gone
	if err := lost.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 3, DistinctIDs: []string{"w"}, Events: true}); err != nil {
		t.Fatal(err)
	}
	e, _, _ := startBlockedErasure(t, d, log, "u")
	s := &stage{db: d}
	w := startPartition(t, d, log, eventlog.PartitionOf(1, "w", 2), e, nil, s)
	acceptOnLog(t, log, "after", "w")
	time.Sleep(200 * time.Millisecond) // the lane waits by then, most likely
	if got := s.list(); len(got) != 0 {
		t.Errorf("processed %q before the erasure of the log", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Stop(ctx); err != nil {
		t.Fatalf("drain during the wait: %v", err)
	}
}

// A done erasure whose record is read again stays without its distinct ids.
func TestRecoveryForgetsDistinctIDs(t *testing.T) {
	t.Parallel()
	d, log := dbtest.SQLite(t), ingestiontest.NewMemoryLog(1)
	e := startErasuresOnLog(t, d, log, &removals{})
	if err := e.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "DELETE FROM erased_ids"); err != nil { // as after a move to another log
		t.Fatal(err)
	}
	p := erasure.New(d, nil, &removals{}, zap.NewNop())
	p.OnLog(log)
	if !p.Partition(0).Recover(t.Context(), 0) {
		t.Fatal("not recovered")
	}
	var ids string
	var marks int
	if err := d.Read(t.Context()).NewRaw("SELECT distinct_ids, (SELECT count(*) FROM erased_ids) FROM erasures").Scan(t.Context(), &ids, &marks); err != nil || ids != "[]" || marks != 1 {
		t.Errorf("distinct ids %s and %d marks: %v", ids, marks, err)
	}
}

// A worker that takes a backlog over writes how far it has read it for erasures, behind its
// cursor in the database.
func TestTakeoverWritesPosition(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		const backlog = 17_000
		log := ingestiontest.NewMemoryLog(1)
		e := erasure.New(d, nil, &removals{}, zap.NewNop())
		e.OnLog(log)
		w := startPartition(t, d, log, 0, e, nil)
		for range 3 {
			acceptOnLog(t, log, "e", "u")
		}
		eventually(t, "the first events", func() bool { return w.Status().Position.Seq == 3 })
		stopWorker(t, w)
		rec := ingestiontest.Record(`[{"event":"e","distinct_id":"u"}]`)
		parts := make([]eventlog.Part, backlog)
		for i := range parts {
			parts[i].Data = rec.Append(nil)
		}
		if err := log.Append(t.Context(), parts); err != nil {
			t.Fatal(err)
		}
		startPartition(t, d, log, 0, e, nil)
		var seq int64
		eventually(t, "the position", func() bool {
			err := d.Read(t.Context()).NewRaw("SELECT coalesce(max(seq), 0) FROM erasure_scans").Scan(t.Context(), &seq)
			return err == nil && seq > 0
		})
		if seq <= 3 || seq > backlog+3 {
			t.Errorf("the position is %d", seq)
		}
	})
}

package logmove_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	_ "modernc.org/sqlite" // opens the file of a journal

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/logmove"
)

const partitions = 5

// source is a journal with the events that were appended to it.
type source struct {
	journal.Journal
	events []appended
}

// appended is an event of a record of the journal.
type appended struct {
	seq            uint64
	uuid, distinct string
}

func newSource(t *testing.T) *source {
	t.Helper()
	j, err := journal.Open(journal.DefaultConfig(), t.TempDir(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &source{Journal: j}
}

func (s *source) add(t *testing.T, data []byte) uint64 {
	t.Helper()
	seq, err := s.Append(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// addRequests appends n requests of one to nine events of 20 distinct ids.
func (s *source) addRequests(t *testing.T, r *rand.Rand, n int) {
	t.Helper()
	for i := range n {
		var items []string
		for range 1 + r.IntN(9) {
			items = append(items, fmt.Sprintf(`{"event":"e","distinct_id":"u%d"}`, r.IntN(20)))
		}
		rec := event.Record{ProjectID: 1, ReceivedAt: time.Unix(1_700_000_000+int64(i), 0), Items: []byte("[" + strings.Join(items, ",") + "]")}
		for b := range rec.RequestID {
			rec.RequestID[b] = byte(r.Uint32())
		}
		seq := s.add(t, rec.Append(nil))
		for _, ev := range ingestiontest.Decode(rec).Events {
			s.events = append(s.events, appended{seq, ev.UUID, ev.DistinctID})
		}
	}
}

func (s *source) commit(t *testing.T, reader string, seq uint64) {
	t.Helper()
	if _, err := s.Register(t.Context(), reader, journal.Begin); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), reader, journal.Position{Seq: seq}); err != nil {
		t.Fatal(err)
	}
}

// content is what the partitions have.
type content struct {
	places   map[string][]int // of an event in its partition, by uuid
	order    map[string][]string
	erasures [partitions][]int
	unknown  int
}

func read(t *testing.T, l *ingestiontest.MemoryLog) *content {
	t.Helper()
	c := &content{places: map[string][]int{}, order: map[string][]string{}}
	for p := range partitions {
		for i, data := range l.Records(p) {
			if event.IsErasure(data) {
				c.erasures[p] = append(c.erasures[p], i)
				continue
			}
			rec, err := event.ParseRecord(data)
			if err != nil {
				c.unknown++
				continue
			}
			for _, ev := range ingestiontest.Decode(rec).Events {
				if want := eventlog.PartitionOf(1, ev.DistinctID, partitions); want != p {
					t.Fatalf("an event of %s is in partition %d, not %d", ev.DistinctID, p, want)
				}
				if len(c.places[ev.UUID]) == 0 {
					c.order[ev.DistinctID] = append(c.order[ev.DistinctID], ev.UUID)
				}
				c.places[ev.UUID] = append(c.places[ev.UUID], i)
			}
		}
	}
	return c
}

// check requires the events behind a record, in their order.
func (s *source) check(t *testing.T, c *content, after uint64) {
	t.Helper()
	want := map[string][]string{}
	for _, ev := range s.events {
		if ev.seq > after {
			want[ev.distinct] = append(want[ev.distinct], ev.uuid)
		}
	}
	if got := fmt.Sprint(c.order); got != fmt.Sprint(want) {
		t.Errorf("the log has %s\nnot %s", got, want)
	}
}

var errBroker = errors.New("the broker is away")

// A move that fails again and again moves all that some reader needs, in its order.
func TestMove(t *testing.T) {
	t.Parallel()
	interrupted := 0
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newSource(t)
		s.addRequests(t, r, 300)
		erasure, err := (&event.Erasure{ID: "e1", ProjectID: 1, DistinctIDs: []string{"u3"}, At: time.Unix(1_700_000_000, 0)}).Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		at := s.add(t, erasure)
		s.add(t, []byte{255, 1, 2}) // of a later version
		s.addRequests(t, r, 600)
		after := uint64(r.IntN(290))
		s.commit(t, "worker", after+9)
		s.commit(t, "sink/lines", after)
		log := ingestiontest.NewMemoryLog(partitions)
		log.FailWith(func(eventlog.Part) error {
			if r.IntN(1000) == 0 {
				return errBroker
			}
			return nil
		})
		failures := 0
		report, err := logmove.Move(t.Context(), s, log, logmove.Options{})
		for ; err != nil; report, err = logmove.Move(t.Context(), s, log, logmove.Options{}) {
			if failures++; !errors.Is(err, errBroker) || failures > 1000 {
				t.Fatal(err)
			}
		}
		interrupted += failures
		if report.Left() != 0 || report.First != after+1 || report.Resumed != (report.Records < int64(report.Last-after)) {
			t.Errorf("seed %d: %+v", seed, report)
		}
		c := read(t, log)
		s.check(t, c, after)
		if c.unknown == 0 {
			t.Error("the record of a later version is missing")
		}
		for p, places := range c.erasures {
			if len(places) == 0 {
				t.Fatalf("no erasure in partition %d", p)
			}
		}
		// The newest record of the erasure divides the events.
		for _, ev := range s.events {
			places, of := c.places[ev.uuid], c.erasures[eventlog.PartitionOf(1, ev.distinct, partitions)]
			if len(places) == 0 {
				continue
			}
			if last := places[len(places)-1]; last > of[len(of)-1] != (ev.seq > at) {
				t.Errorf("seed %d: event of record %d is at %v, the erasure of record %d at %v", seed, ev.seq, places, at, of)
			}
		}
	}
	if interrupted == 0 {
		t.Error("no move was interrupted")
	}
}

// A second move adds what came since.
func TestMoveAgain(t *testing.T) {
	t.Parallel()
	s, r := newSource(t), rand.New(rand.NewPCG(1, 2))
	s.addRequests(t, r, 50)
	s.commit(t, "worker", 10)
	log := ingestiontest.NewMemoryLog(partitions)
	dry, err := logmove.Move(t.Context(), s, log, logmove.Options{DryRun: true})
	if err != nil || dry.Records != 40 || dry.Parts == 0 {
		t.Fatalf("%+v: %v", dry, err)
	}
	if got := read(t, log); len(got.places) != 0 {
		t.Error("a dry run appended")
	}
	calls := 0
	first, err := logmove.Move(t.Context(), s, log, logmove.Options{Progress: func(logmove.Report) { calls++ }})
	if err != nil || first.Records != 40 || first.Parts != dry.Parts || first.Bytes != dry.Bytes || calls == 0 {
		t.Fatalf("%+v after %d calls: %v", first, calls, err)
	}
	again, err := logmove.Move(t.Context(), s, log, logmove.Options{})
	if err != nil || again.Records != 0 || !again.Resumed {
		t.Errorf("a move with nothing left: %+v %v", again, err)
	}
	s.addRequests(t, r, 5)
	if again, err = logmove.Move(t.Context(), s, log, logmove.Options{}); err != nil || again.Records != 5 {
		t.Errorf("a move of newer records: %+v %v", again, err)
	}
	s.check(t, read(t, log), 10)
	for uuid, places := range read(t, log).places {
		if len(places) != 1 {
			t.Errorf("event %s is there %d times", uuid, len(places))
		}
	}
}

// A check that fails ends the move before the append; the next move does the rest.
func TestMoveChecksBeforeEachAppend(t *testing.T) {
	t.Parallel()
	s, r := newSource(t), rand.New(rand.NewPCG(3, 4))
	s.addRequests(t, r, 600) // more than one append
	log := ingestiontest.NewMemoryLog(partitions)
	checks, refused := 0, errors.New("a node runs")
	report, err := logmove.Move(t.Context(), s, log, logmove.Options{Check: func(context.Context) error {
		if checks++; checks == 2 {
			return refused
		}
		return nil
	}})
	if !errors.Is(err, refused) || report.Records == 0 || report.Left() == 0 {
		t.Fatalf("%+v after %d checks: %v", report, checks, err)
	}
	rest, err := logmove.Move(t.Context(), s, log, logmove.Options{})
	if err != nil || report.Records+rest.Records != 600 {
		t.Fatalf("%+v after %+v: %v", rest, report, err)
	}
	s.check(t, read(t, log), 0)
}

// What is moved reaches the sinks and followers of the journal, which begin at the end of a
// log in which they are new.
func TestMoveRegistersReaders(t *testing.T) {
	t.Parallel()
	s, log := newSource(t), ingestiontest.NewMemoryLog(partitions)
	s.addRequests(t, rand.New(rand.NewPCG(1, 4)), 40)
	readers := []string{"follower/notifications", "sink/lines"}
	for _, name := range append(readers, "worker") {
		s.commit(t, name, 3)
	}
	if _, err := logmove.Move(t.Context(), s, log, logmove.Options{}); err != nil {
		t.Fatal(err)
	}
	for p := range partitions {
		stats, err := log.Partition(p, 0).Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range stats.Readers {
			names = append(names, r.Name)
			if r.Position.Seq != 0 || stats.Last == 0 {
				t.Errorf("partition %d: %s is at %d of %d", p, r.Name, r.Position.Seq, stats.Last)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, readers) {
			t.Errorf("partition %d has the readers %v", p, names)
		}
	}
}

// A journal without readers was never processed: all of it moves. An empty one is no error.
func TestMoveWithoutReaders(t *testing.T) {
	t.Parallel()
	s, log := newSource(t), ingestiontest.NewMemoryLog(partitions)
	if report, err := logmove.Move(t.Context(), s, log, logmove.Options{}); err != nil || report != (logmove.Report{First: 1}) {
		t.Errorf("an empty journal: %+v %v", report, err)
	}
	s.addRequests(t, rand.New(rand.NewPCG(1, 3)), 7)
	if report, err := logmove.Move(t.Context(), s, log, logmove.Options{}); err != nil || report.Records != 7 {
		t.Errorf("%+v %v", report, err)
	}
	s.check(t, read(t, log), 0)
}

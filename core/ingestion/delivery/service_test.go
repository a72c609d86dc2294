package delivery

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// listedSinks is a node with a fixed list of sinks.
type listedSinks []Sink

func (l listedSinks) Sinks() []Sink          { return l }
func (listedSinks) Changed() <-chan struct{} { return nil }

func testService(t *testing.T, cfg Config, sinks ...Sink) *Service {
	t.Helper()
	d, err := NewService(cfg, event.DefaultLimits(), logOf(), dbtest.SQLite(t), listedSinks(sinks), NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCursorsOfRemovedSinksAreForgotten: a cursor is removed when its sink has been missing for as long as the
// configuration says, here and elsewhere.
func TestCursorsOfRemovedSinksAreForgotten(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.ForgetAfter = time.Hour
	d := testService(t, cfg)
	d.running["here"] = &delivery{}
	elsewhere := true
	d.elsewhere = func(name string) bool { return name == "elsewhere" && elsewhere }
	var readers []journal.ReaderStats
	for _, name := range []string{"pipeline", "sink/here", "historical/sink/here", "sink/elsewhere", "sink/gone", "historical/sink/gone"} {
		readers = append(readers, journal.ReaderStats{Name: name})
	}
	pass := func(age time.Duration) { // as if the missing ones had been seen so long ago
		for name, since := range d.missing {
			d.missing[name] = since.Add(-age)
		}
	}
	for _, c := range []struct {
		name  string
		after time.Duration
		want  []string
	}{
		{"at first", 0, nil},
		{"soon", 59 * time.Minute, nil},
		{"after an hour", time.Minute, []string{"sink/gone", "historical/sink/gone"}},
		{"again, if they are still there", 0, nil},
		{"after another hour", time.Hour, []string{"sink/gone", "historical/sink/gone"}},
	} {
		pass(c.after)
		if got := d.removedCursors(readers); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}

	// A sink that comes back is not missing, and waits for the whole time when it goes again.
	d.running["gone"] = &delivery{}
	pass(time.Hour)
	if got := d.removedCursors(readers); got != nil {
		t.Errorf("removed %v of sinks that are back", got)
	}
	delete(d.running, "gone")
	elsewhere = false
	if got := d.removedCursors(readers); got != nil {
		t.Errorf("removed %v at once", got)
	}
	pass(time.Hour)
	if got := d.removedCursors(readers); !slices.Equal(got, []string{"sink/elsewhere", "sink/gone", "historical/sink/gone"}) {
		t.Errorf("removed %v", got)
	}
}

func TestSinksAreRegisteredBeforeTheirDelivery(t *testing.T) {
	t.Parallel()
	for start, want := range map[string]journal.Start{"end": journal.End, "begin": journal.Begin} {
		cfg := DefaultConfig()
		cfg.Start = start
		d := testService(t, cfg, &scriptedSink{}, &scriptedSink{})
		var readers []string
		err := d.Register(func(reader string, from journal.Start) error {
			if readers = append(readers, reader); from != want {
				t.Errorf("%s begins at %v, want %v", reader, from, want)
			}
			return errors.New("no journal")
		})
		if !slices.Equal(readers, []string{"sink/test", "sink/test"}) || err == nil || err.Error() != "register the sink test: no journal\nregister the sink test: no journal" {
			t.Errorf("registered %v: %v", readers, err)
		}
	}
	if d := testService(t, DefaultConfig(), &scriptedSink{}); !slices.Equal(d.Names(), []string{"test"}) || d.Paused("test") != nil {
		t.Errorf("sinks %v", d.Names())
	}
}

// TestPausesOfSinks pauses and resumes a sink; an unknown one has no pause.
func TestPausesOfSinks(t *testing.T) {
	t.Parallel()
	d := testService(t, DefaultConfig(), &scriptedSink{})
	if err := d.Pause(t.Context(), "test", "maintenance"); err != nil {
		t.Fatal(err)
	}
	if p := d.Paused("test"); p == nil || p.Reason != "maintenance" || p.At.IsZero() {
		t.Errorf("paused: %+v", p)
	}
	if err := d.Resume(t.Context(), "test"); err != nil || d.Paused("test") != nil {
		t.Errorf("%v, paused: %+v", err, d.Paused("test"))
	}
	if !errors.Is(d.Pause(t.Context(), "other", "x"), ErrNoSink) || !errors.Is(d.Resume(t.Context(), "other"), ErrNoSink) || d.Paused("other") != nil {
		t.Error("a sink that is not configured is paused")
	}
}

// A pause is known again after a restart, before anything is sent.
func TestPauseSurvivesARestart(t *testing.T) {
	t.Parallel()
	d, log := dbtest.SQLite(t), steadyLog()
	sent := make(chan string, 10)
	sink := &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		sent <- namesOf(b)
		return b.Committed(), nil
	}}
	s := startService(t, d, log, sink)
	eventually(t, "a sink without events is idle", func() bool { return s.StatusOf(nil)[0].State == "idle" })
	if err := s.Pause(t.Context(), "test", "maintenance"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.addEvents("a")

	s = startService(t, d, log, sink)
	eventually(t, "the pause is known", func() bool { return s.Paused("test") != nil })
	if got := s.StatusOf(nil)[0]; got.State != "paused" || got.Paused == nil || got.Paused.Reason != "maintenance" || len(sent) > 0 {
		t.Errorf("%d calls, status %+v", len(sent), got)
	}
	if err := s.Resume(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if got := <-sent; got != "a" {
		t.Errorf("sent %q", got)
	}
	if at, _ := log.position("sink/test"); at.Count > 1 {
		t.Errorf("the cursor is at %+v", at)
	}
}

// Staged events are flushed when the oldest is old enough, also if no other event comes.
func TestStagedEventsAreFlushedByTheirAge(t *testing.T) {
	t.Parallel()
	reasons := make(chan sdk.FlushReason, 10)
	sink := &flushingSink{scriptedSink: scriptedSink{
		current: 1, write: func(*sdk.Batch) (sdk.WriteResult, error) { return sdk.WriteResult{Outcome: sdk.Staged}, nil },
	}, reasons: reasons}
	sink.age.Store(int64(5 * time.Millisecond))
	log := steadyLog()
	s := startService(t, dbtest.SQLite(t), log, sink)
	log.addEvents("a", "b")
	if got := <-reasons; got != sdk.FlushTimer {
		t.Errorf("flushed for the reason %v", got)
	}
	eventually(t, "the cursor is at the end", func() bool { at, _ := log.position("sink/test"); return at.Seq == 1 && at.Count == 2 })
	if got := s.StatusOf(nil)[0]; got.StagedEvents != 0 || got.Delivered != 2 {
		t.Errorf("status %+v", got)
	}

	// What is staged when the delivery stops is flushed, too.
	sink.age.Store(int64(time.Hour))
	log.addEvents("c")
	eventually(t, "an event is staged", func() bool { return s.StatusOf(nil)[0].StagedEvents == 1 })
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-reasons; got != sdk.FlushShutdown {
		t.Errorf("flushed for the reason %v", got)
	}
	if at, _ := log.position("sink/test"); at.Count != 3 {
		t.Errorf("the cursor is at %+v after the stop", at)
	}
}

// flushingSink commits everything and tells why it was asked to.
type flushingSink struct {
	scriptedSink

	age     atomic.Int64
	reasons chan sdk.FlushReason
}

func (s *flushingSink) Properties() sdk.SinkProperties {
	return sdk.SinkProperties{Commit: sdk.CommitOnFlush, MaxStagedAge: time.Duration(s.age.Load())}
}

func (s *flushingSink) Flush(_ context.Context, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	s.reasons <- reason
	return sdk.FlushResult{CommittedThrough: upTo}, nil
}

// A chunk has the batches of what the filter lets through, with the records and spans of their events.
func TestChunksKeepRecordsAndSpans(t *testing.T) {
	t.Parallel()
	c := testCursors(t, logOf())
	f, err := filter.New(settings.Delivery{Events: settings.EventFilter{Exclude: []string{"noise"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := testReader(false)
	r.firstHistorical = &journal.Position{Seq: 4}
	b := &reader.Batch{Begin: journal.Position{Seq: 4}, End: journal.Position{Seq: 8, Index: 1}, Origins: []reader.Origin{{Seq: 5}, {Seq: 7}}}
	for i, name := range []string{"noise", "a", "b", "noise", "c", "noise"} {
		b.Events = append(b.Events, sdk.Event{UUID: "0190a5a2-7b3c-7000-8000-000000000001", ProjectID: 1, Name: name, DistinctID: "u", Properties: []byte("{}")})
		b.Ends = append(b.Ends, journal.Position{Seq: 4 + uint64(i), Index: 1})
	}
	c.cfg.MaxEvents = 2
	got := c.newChunk(r, b, f, nil)
	if got.begin != b.Begin || got.end != b.End || got.filtered != 3 || got.firstHistorical.Seq != 4 || r.firstHistorical != nil || len(got.batches) != 2 {
		t.Fatalf("%+v", got)
	}
	for i, want := range [][]uint64{{6, 7}, {9}} {
		if s := got.batches[i]; !slices.Equal(s.seqs, want) || len(s.events) != len(want) || len(s.origins) != 2 {
			t.Errorf("batch %d has the records %v and %d spans, want %v", i, s.seqs, len(s.origins), want)
		}
	}
	if c.stats.Status("test").Filtered != 3 {
		t.Errorf("%d events are counted as filtered", c.stats.Status("test").Filtered)
	}
}

package delivery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// startService starts deliveries of a log, which end with the test.
func startService(t *testing.T, d *db.DB, log *liveLog, sinks ...Sink) *Service {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Start, cfg.RetryMin, cfg.RetryMax, cfg.ConfigRetry, cfg.Linger = "begin", time.Millisecond, 3*time.Millisecond, 5*time.Millisecond, time.Millisecond
	s, err := NewService(cfg, event.DefaultLimits(), log, d, listedSinks(sinks), NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	must(t, err)
	must(t, s.Start(context.Background()))
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

// steadyLog is a log that never fails.
func steadyLog() *liveLog {
	l := newLiveLog()
	l.stopFailing()
	return l
}

// addEvents adds a request with events of these names.
func (l *liveLog) addEvents(names ...string) {
	var items []string
	for _, name := range names {
		items = append(items, `{"event":"`+name+`","distinct_id":"u"}`)
	}
	rec := event.Record{ReceivedAt: time.Now(), ProjectID: 1, RequestID: [16]byte{byte(l.last() + 1), 9}, Items: []byte("[" + strings.Join(items, ",") + "]")}
	l.add(journal.Record{Data: rec.Append(nil)}, false)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

// TestAnswersOfReplays checks what the sender of a replay learns from each answer of a sink.
func TestAnswersOfReplays(t *testing.T) {
	t.Parallel()
	write := func(r sdk.WriteResult) func(*sdk.Batch) (sdk.WriteResult, error) {
		return func(*sdk.Batch) (sdk.WriteResult, error) { return r, nil }
	}
	staged := write(sdk.WriteResult{Outcome: sdk.Staged})
	flush := func(through uint64, failures ...sdk.FlushFailure) func(uint64) (sdk.FlushResult, error) {
		return func(uint64) (sdk.FlushResult, error) {
			return sdk.FlushResult{CommittedThrough: through, Failures: failures}, nil
		}
	}
	permanent := sdk.Errorf(sdk.ClassPermanent, "constraint", "no")
	for _, c := range []struct {
		name  string
		write func(*sdk.Batch) (sdk.WriteResult, error)
		flush func(uint64) (sdk.FlushResult, error)
		want  string // code; "" is success
	}{
		{"committed", write(sdk.WriteResult{Outcome: sdk.Committed}), nil, ""},
		{"rejected", write(sdk.WriteResult{Outcome: sdk.Rejected, Err: permanent}), nil, "constraint"},
		{"partial", write(sdk.WriteResult{Outcome: sdk.Partial, Failures: []sdk.Failure{{Err: permanent}}}), nil, "constraint"},
		{"partial without a reason", write(sdk.WriteResult{Outcome: sdk.Partial, Failures: []sdk.Failure{{}}}), nil, "unspecified"},
		{"no outcome", write(sdk.WriteResult{}), nil, "contract_breach"},
		{"no answer", func(*sdk.Batch) (sdk.WriteResult, error) { return sdk.WriteResult{}, permanent }, nil, "constraint"},
		{"staged and committed", staged, flush(7), ""},
		{"staged and committed with others", staged, flush(8), ""},
		{"staged and not committed", staged, flush(6), "flush_incomplete"},
		{"staged and rejected", staged, flush(7, sdk.FlushFailure{Seq: 7, Err: permanent}), "constraint"},
		{"staged and no answer", staged, func(uint64) (sdk.FlushResult, error) { return sdk.FlushResult{}, permanent }, "constraint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var sent *sdk.Batch
			sink := &scriptedSink{flush: c.flush, current: 1}
			sink.write = func(b *sdk.Batch) (sdk.WriteResult, error) { sent = b; return c.write(b) }
			s := startService(t, dbtest.SQLite(t), steadyLog(), sink)
			ev := sdk.Event{UUID: "0190a5a2-7b3c-7000-8000-000000000001", ProjectID: 1, Name: "again", DistinctID: "u", Properties: []byte("{}")}
			got := ""
			if err := s.Replay(t.Context(), "test", ev, 7, 3); err != nil {
				got = "another error: " + err.Error()
				if e, ok := errors.AsType[*sdk.Error](err); ok {
					got = e.Code
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if sent == nil || sent.Attempt != 3 || sent.FirstSeq != 7 || sent.LastSeq != 7 || namesOf(sent) != "again" {
				t.Errorf("sent %+v", sent)
			}
			all, err := s.Status(t.Context())
			must(t, err)
			if delivered := all[0].Delivered; (delivered == 1) != (c.want == "") || all[0].StagedEvents != 0 {
				t.Errorf("%d events were delivered, %d are staged", delivered, all[0].StagedEvents)
			}
		})
	}
}

// A replay that a sink did not get is refused as busy: the caller tries it again.
func TestReplaysThatAreNotSent(t *testing.T) {
	t.Parallel()
	sink := &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		return sdk.WriteResult{}, sdk.Errorf(sdk.ClassTransient, "busy", "always")
	}}
	log := steadyLog()
	s := startService(t, dbtest.SQLite(t), log, sink)
	ev := sdk.Event{UUID: "0190a5a2-7b3c-7000-8000-000000000001", ProjectID: 1, Name: "again", DistinctID: "u", Properties: []byte("{}")}
	if err := s.Replay(t.Context(), "other", ev, 1, 1); !errors.Is(err, ErrNoSink) {
		t.Errorf("a sink that is not configured: %v", err)
	}

	must(t, s.Pause(t.Context(), "test", "maintenance"))
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Replay(short, "test", ev, 1, 1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a paused sink: %v", err)
	}
	must(t, s.Resume(t.Context(), "test"))

	log.addEvents("a")
	eventually(t, "a batch is sent again and again", func() bool { return s.StatusOf(nil)[0].InFlight == 1 })
	refused := make(chan error)
	go func() { refused <- s.Replay(context.WithoutCancel(t.Context()), "test", ev, 1, 1) }()
	eventually(t, "the replay waits for the batch", func() bool {
		short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		return errors.Is(s.Replay(short, "test", ev, 1, 1), ErrSinkBusy)
	})
	must(t, s.Stop(context.Background()))
	if err := <-refused; !errors.Is(err, ErrSinkBusy) {
		t.Errorf("a delivery that stops: %v", err)
	}
	if err := s.Replay(t.Context(), "test", ev, 1, 1); !errors.Is(err, ErrSinkBusy) {
		t.Errorf("a delivery that has stopped: %v", err)
	}
}

// Records that cannot be read are reported, and cost no other event.
func TestUnreadableRecordsAreReported(t *testing.T) {
	t.Parallel()
	log := steadyLog()
	got := make(chan string, 10)
	sink := &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		got <- namesOf(b)
		return sdk.WriteResult{Outcome: sdk.Committed}, nil
	}}
	s := startService(t, dbtest.SQLite(t), log, sink)
	log.addEvents("a")
	if names := <-got; names != "a" || s.StatusOf(nil)[0].LastError != "" {
		t.Errorf("got %q, last error %q", names, s.StatusOf(nil)[0].LastError)
	}
	log.add(journal.Record{Data: []byte("not a record")}, false)
	log.addEvents("b")
	if names := <-got; names != "b" || s.StatusOf(nil)[0].LastError == "" {
		t.Errorf("got %q, last error %q, want that of the record", names, s.StatusOf(nil)[0].LastError)
	}
}

// recoveringErasures are known when the channel is closed.
type recoveringErasures struct {
	erasedIDs

	asked     chan struct{}
	recovered chan struct{}
}

func (e *recoveringErasures) WaitRecovered(ctx context.Context) bool {
	e.asked <- struct{}{}
	select {
	case <-e.recovered:
		return true
	case <-ctx.Done():
		return false
	}
}

// Nothing is sent before the erasures of the log are known.
func TestErasuresAreKnownBeforeEvents(t *testing.T) {
	t.Parallel()
	log := steadyLog()
	log.addEvents("a")
	erased := &recoveringErasures{asked: make(chan struct{}), recovered: make(chan struct{})}
	sent := make(chan bool, 10)
	sink := &scriptedSink{write: func(*sdk.Batch) (sdk.WriteResult, error) {
		select {
		case <-erased.recovered:
			sent <- true
		default:
			sent <- false
		}
		return sdk.WriteResult{Outcome: sdk.Committed}, nil
	}}
	d := dbtest.SQLite(t)
	for recovered := range 2 { // it also stops while it waits
		s, err := NewService(DefaultConfig(), event.DefaultLimits(), log, d, listedSinks{sink}, NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
		must(t, err)
		s.cfg.Start, s.cfg.Linger = "begin", time.Millisecond
		s.RespectErasures(erased)
		must(t, s.Start(t.Context()))
		<-erased.asked
		if recovered == 1 {
			close(erased.recovered)
			if !<-sent {
				t.Error("an event was sent before the erasures were known")
			}
		}
		must(t, s.Stop(context.Background()))
	}
	if len(sent) > 0 {
		t.Errorf("%d further calls", len(sent))
	}
}

// countedSink has a delivery section.
type countedSink struct{ *scriptedSink }

func (countedSink) Delivery() (settings.Delivery, error) {
	return settings.Delivery{Events: settings.EventFilter{Exclude: []string{"noise"}}}, nil
}

// TestDeliveriesAreCounted checks the metrics and the status of a short story.
func TestDeliveriesAreCounted(t *testing.T) {
	t.Parallel()
	log, erased := steadyLog(), &erasedIDs{}
	log.addEvents("a", "noise", "poison", "busy")
	log.add(journal.Record{}, true)
	log.addEvents("b")
	rec := event.Record{ReceivedAt: time.Now(), ProjectID: 1, RequestID: [16]byte{7}, Items: []byte(`[{"event":"c","distinct_id":"gone"},{"event":"d","distinct_id":"u"}]`)}
	log.add(journal.Record{Data: rec.Append(nil)}, false)
	erased.add("gone", log.last()+1)

	busy := true
	sink := countedSink{&scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		names := strings.Fields(namesOf(b))
		if busy {
			busy = false
			return reject(sdk.ClassTransient, "busy")
		}
		if i := slices.Index(names, "poison"); i >= 0 {
			return b.Partial(sdk.Failure{Index: i, Err: sdk.Errorf(sdk.ClassPermanent, "constraint", "no")}), nil
		}
		return b.Committed(), nil
	}}}
	logged, logs := observer.New(zap.WarnLevel)
	reg := prometheus.NewRegistry()
	cfg := DefaultConfig()
	cfg.Start, cfg.RetryMin, cfg.RetryMax, cfg.Linger = "begin", time.Millisecond, 3*time.Millisecond, time.Millisecond
	s, err := NewService(cfg, event.DefaultLimits(), log, dbtest.SQLite(t), listedSinks{sink}, NewMetrics(reg), deadletter.NewMetrics(reg), zap.New(logged))
	must(t, err)
	s.RespectErasures(erased)
	must(t, s.Start(t.Context()))
	eventually(t, "the cursor is at the end", func() bool { at, _ := log.position("sink/test"); return at.Seq == log.last() })
	eventually(t, "it is idle", func() bool { return s.StatusOf(nil)[0].State == "idle" })
	got := s.StatusOf(nil)[0]
	must(t, s.Stop(context.Background()))
	if got.Delivered != 4 || got.DeadLetters != 2 || got.Filtered != 2 || got.InFlight != 0 || got.StagedEvents != 0 || got.LastErrorAt == nil {
		t.Errorf("status %+v", got)
	}

	for message, want := range map[string]int{"sinks not registered at the journal; retrying": 0, "sink write failed; retrying": 1, "event dead-lettered": 1} {
		if got := logs.FilterMessage(message).Len(); got != want {
			t.Errorf("logged %q %d times, want %d", message, got, want)
		}
	}

	families, err := reg.Gather()
	must(t, err)
	counted := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "guidon_ingestion_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			counted[name] += m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	calls := 0.0
	for name, n := range counted {
		if strings.HasPrefix(name, "deliver_calls_total ") {
			calls += n
		}
	}
	for name, want := range map[string]float64{
		"deliver_events_total test":                4,
		"deliver_skipped_events_total erased test": 1,
		"deliver_skipped_events_total event test":  1,
		"dead_letters_total sink/test":             2,
		"deliver_empty_flushes_total test":         0,
		"deliver_calls_total partial test":         1,
		"deliver_calls_total transient test":       1,
	} {
		if counted[name] != want {
			t.Errorf("%s is %v, want %v: %v", name, counted[name], want, counted)
		}
	}
	if counted["deliver_batch_events test"] < 5 || counted["deliver_seconds test"] <= 0 || calls < 3 {
		t.Errorf("calls are counted as %v", counted)
	}
}

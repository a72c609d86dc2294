package ingestion_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

func TestDeliverSendsEverythingInOrder(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	accept(t, j, "a", "b", `{"event":"dropped"}`)
	accept(t, j, "c")
	s := &fakeSink{name: "one", props: sdk.SinkProperties{MaxEvents: 2}}
	startDeliver(t, deliverConfig(), j, d, newSinks(s))
	accept(t, j, "d", "e", "f", "g", "h")
	eventually(t, "all events", func() bool { return s.has() == "a b c d e f g h" })
	eventually(t, "the cursor", func() bool { return committed(t, j, "sink/one") == journal.Position{Seq: 3, Count: 8} })
	next, ids := uint64(1), map[string]bool{}
	for _, b := range s.sent() {
		if b.FirstSeq != next || b.LastSeq != next+uint64(len(b.Records))-1 || len(b.Records) > 2 || b.Attempt != 1 {
			t.Errorf("batch %d to %d of %d records", b.FirstSeq, b.LastSeq, len(b.Records))
		}
		if next = b.LastSeq + 1; ids[b.ID] || len(b.ID) != 26 {
			t.Errorf("batch id %q", b.ID)
		}
		ids[b.ID] = true
	}
}

func TestDeliverRecordsAreCanonicalEvents(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	accept(t, j, `{"event":"a","distinct_id":"u","uuid":"0190A5A2-7B3C-7000-8000-0000000000FF","properties":{"n":1.50}}`)
	s := &fakeSink{name: "one"}
	startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "the event", func() bool { return s.has() == "a" })
	r := s.sent()[0].Records[0]
	const want = `{"uuid":"0190a5a2-7b3c-7000-8000-0000000000ff","project_id":1,"event":"a","distinct_id":"u",` +
		`"timestamp":"2024-05-01T10:00:00.000000Z","received_at":"2024-05-01T10:00:00.000000Z","properties":{"n":1.50}}`
	if string(r.JSON) != want || r.ProjectID != 1 || !r.ReceivedAt.Equal(ingestiontest.Arrival) {
		t.Errorf("got %s of %d at %s", r.JSON, r.ProjectID, r.ReceivedAt)
	}
	if fmt.Sprintf("%x", r.UUID) != "0190a5a27b3c700080000000000000ff" {
		t.Errorf("uuid %x", r.UUID)
	}
}

func TestDeliverRetries(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	cases := []struct {
		name   string
		answer func(b *sdk.Batch) (sdk.WriteResult, error)
	}{
		{"an unknown outcome", func(*sdk.Batch) (sdk.WriteResult, error) { return sdk.WriteResult{}, boom }},
		{"an empty answer", func(*sdk.Batch) (sdk.WriteResult, error) { return sdk.WriteResult{}, nil }},
		{"a rejection without a reason", func(*sdk.Batch) (sdk.WriteResult, error) {
			return sdk.WriteResult{Outcome: sdk.Rejected}, nil
		}},
		{"partial without failures", func(*sdk.Batch) (sdk.WriteResult, error) {
			return sdk.WriteResult{Outcome: sdk.Partial}, nil
		}},
		{"failures that are not of the batch", func(*sdk.Batch) (sdk.WriteResult, error) {
			return sdk.WriteResult{Outcome: sdk.Partial, Failures: []sdk.Failure{{Index: 99}}}, nil
		}},
		{"transient", rejects(sdk.ClassTransient)}, {"throttled", rejects(sdk.ClassThrottled)},
		{"not connected", rejects(sdk.ClassNotConnected)}, {"misconfigured", rejects(sdk.ClassConfig)},
		{"internal, a few times", rejects(sdk.ClassInternal)}, {"no class", rejects(sdk.ClassUnspecified)},
		{"a class of tomorrow", rejects(99)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			accept(t, j, "a", "b")
			s := &fakeSink{name: "one"}
			s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
				if b.Attempt < 3 {
					return c.answer(b)
				}
				return b.Committed(), nil
			}
			startDeliver(t, deliverConfig(), j, d, newSinks(s))
			eventually(t, "the events", func() bool { return s.has() == "a b" })
			sent := s.sent()
			if len(sent) != 3 || sent[0].ID != sent[2].ID || sent[2].Attempt != 3 {
				t.Errorf("%d batches: %+v", len(sent), sent)
			}
			if got := letters(t, d); got != "" {
				t.Errorf("dead letters %s", got)
			}
		})
	}
}

func rejects(class sdk.Class) func(b *sdk.Batch) (sdk.WriteResult, error) {
	return func(*sdk.Batch) (sdk.WriteResult, error) {
		return sdk.WriteResult{Outcome: sdk.Rejected, Err: &sdk.Error{Class: class, Code: "test", Message: "no"}}, nil
	}
}

func TestDeliverSetsAsideWhatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	poison := func(b *sdk.Batch) int { return slices.Index(eventNames(b), "poison") }
	permanent := &sdk.Error{Class: sdk.ClassPermanent, Code: "constraint", Message: "no such column"}
	cases := []struct {
		name  string
		write func(b *sdk.Batch) (sdk.WriteResult, error)
	}{
		{"named in a partial answer", func(b *sdk.Batch) (sdk.WriteResult, error) {
			if i := poison(b); i >= 0 {
				return b.Partial(sdk.Failure{Index: i, Err: permanent}), nil
			}
			return b.Committed(), nil
		}},
		{"found by halving a batch that was refused as a whole", func(b *sdk.Batch) (sdk.WriteResult, error) {
			if poison(b) >= 0 {
				return sdk.WriteResult{Outcome: sdk.Rejected, Err: permanent}, nil
			}
			return b.Committed(), nil
		}},
		{"found by halving a batch that makes the plugin panic", func(b *sdk.Batch) (sdk.WriteResult, error) {
			if poison(b) >= 0 {
				return rejects(sdk.ClassInternal)(b)
			}
			return b.Committed(), nil
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			accept(t, j, "a", "b", "poison", "c", "d", "e", "f")
			s := &fakeSink{name: "one", write: c.write}
			del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
			accept(t, j, "g")
			eventually(t, "the others", func() bool { return s.has() == "a b c d e f g" })
			eventually(t, "the cursor", func() bool { return committed(t, j, "sink/one").Count == 8 })
			if got := letters(t, d); got != "poison" {
				t.Errorf("dead letters %q", got)
			}
			status, err := del.Status(t.Context())
			if err != nil || len(status) != 1 || status[0].DeadLetters != 1 || status[0].Delivered != 7 || status[0].LastError == "" {
				t.Errorf("status %+v, %v", status, err)
			}
		})
	}
}

func TestDeliverSendsPartsAgain(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	accept(t, j, "a", "b", "c", "d", "e", "f")
	s := &fakeSink{name: "one"}
	s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
		if len(b.Records) == 6 {
			late := &sdk.Error{Class: sdk.ClassTransient, Code: "later", Message: "later"}
			return b.Partial(sdk.Failure{Index: 4, Err: late}, sdk.Failure{Index: 1, Err: late}, sdk.Failure{Index: 2}), nil
		}
		return b.Committed(), nil
	}
	startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "the parts", func() bool { return s.has() == "a d f b c e" })
	sent := s.sent()
	if len(sent) != 3 || sent[1].FirstSeq != 2 || sent[1].LastSeq != 3 || sent[2].FirstSeq != 5 || sent[2].LastSeq != 5 {
		t.Errorf("sent %+v", sent)
	}
}

// TestDeliverSinkKilled lets the sink die in the middle of batches, again and
// again: what it had stored of the batch it stored, the answer is lost.
func TestDeliverSinkKilled(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	const n = 500
	for i := range n {
		accept(t, j, fmt.Sprintf(`{"event":"%d","distinct_id":"u%d"}`, i, i%7))
	}
	var stored []string // by uuid, the first time only: the sink knows its events
	seen, calls := map[[16]byte]bool{}, 0
	s := &fakeSink{name: "one", props: sdk.SinkProperties{MaxEvents: 20}}
	s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
		calls++
		die := calls%3 == 0
		for i, r := range b.Records {
			if die && i == len(b.Records)/2 {
				return sdk.WriteResult{}, errors.New("the process is gone")
			}
			if !seen[r.UUID] {
				seen[r.UUID] = true
				stored = append(stored, eventNames(&sdk.Batch{Records: b.Records[i : i+1]})[0])
			}
		}
		return b.Committed(), nil
	}
	del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "the first hundred", func() bool { return committed(t, j, "sink/one").Count >= 100 })
	stopDeliver(t, del) // and the server is restarted in between, too
	startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "everything", func() bool { return committed(t, j, "sink/one").Count == n })
	eventually(t, "the sink is told where to resume", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.resumed >= 100 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(stored) != n {
		t.Fatalf("%d of %d events", len(stored), n)
	}
	for i, name := range stored {
		if name != fmt.Sprint(i) {
			t.Fatalf("event %s at place %d", name, i)
		}
	}
}

func TestDeliverSinksDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	never := &fakeSink{name: "never", ready: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	stuck := &fakeSink{name: "stuck", write: rejects(sdk.ClassTransient)}
	fine := &fakeSink{name: "fine"}
	del := startDeliver(t, deliverConfig(), j, d, newSinks(never, stuck, fine))
	accept(t, j, "a", "b")
	eventually(t, "the one that is well", func() bool { return fine.has() == "a b" })
	accept(t, j, "c")
	eventually(t, "the one that is well", func() bool { return fine.has() == "a b c" })
	eventually(t, "its cursor", func() bool { return committed(t, j, "sink/fine").Seq == 2 })
	status, err := del.Status(t.Context())
	if err != nil || len(status) != 3 || status[0].LagRecords != 0 || status[1].LagRecords != 2 || status[1].State != "waiting" ||
		status[2].LagRecords != 2 || status[2].OldestAt == nil {
		t.Errorf("status %+v, %v", status, err)
	}
}

func TestDeliverWaitsForTheDatabaseWithDeadLetters(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	rename := func(from, to string) {
		if _, err := d.Write(t.Context()).NewRaw("ALTER TABLE " + from + " RENAME TO " + to).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	rename("dead_letters", "gone")
	accept(t, j, "a")
	s := &fakeSink{name: "one", write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		if eventNames(b)[0] == "a" {
			return rejects(sdk.ClassPermanent)(b)
		}
		return b.Committed(), nil
	}}
	del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "it waits", func() bool {
		status, err := del.Status(t.Context())
		return err == nil && status[0].State == "waiting_for_database"
	})
	accept(t, j, "b")
	if s.has() != "" || committed(t, j, "sink/one").Seq != 0 {
		t.Errorf("went on: %q", s.has())
	}
	rename("gone", "dead_letters")
	eventually(t, "the next event", func() bool { return s.has() == "b" })
	if letters(t, d) != "a" {
		t.Errorf("dead letters %q", letters(t, d))
	}
}

func TestDeliverFollowsTheConfig(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	cfg := deliverConfig()
	cfg.Deliver.Start, cfg.Deliver.ForgetAfter = "end", 60*time.Millisecond
	accept(t, j, "before")
	one := &fakeSink{name: "one"}
	sinks := newSinks(one)
	startDeliver(t, cfg, j, d, sinks)
	eventually(t, "it begins at the end", func() bool { return committed(t, j, "sink/one").Seq == 1 })
	accept(t, j, "a")
	eventually(t, "the first event", func() bool { return one.has() == "a" })
	two, again := &fakeSink{name: "two"}, &fakeSink{name: "one"}
	sinks.set(two, again) // one has been replaced
	eventually(t, "the new one has a place", func() bool { return committed(t, j, "sink/two").Seq == 2 })
	accept(t, j, "b")
	eventually(t, "the next event", func() bool { return two.has() == "b" && again.has() == "b" })
	if one.has() != "a" {
		t.Errorf("the old one has %q", one.has())
	}
	sinks.set(two)
	eventually(t, "the place of the one that was removed is forgotten", func() bool {
		stats, err := j.Stats(t.Context())
		return err == nil && len(stats.Readers) == 1 && stats.Readers[0].Name == "sink/two"
	})
}

func TestDeliverInFlight(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	for i := range 8 {
		accept(t, j, fmt.Sprint(i))
	}
	for _, c := range []struct {
		name     string
		ordering sdk.Ordering
		most     int
	}{{"any", sdk.OrderNone, 3}, {"keyed", sdk.OrderPerKey, 1}} {
		t.Run(c.name, func(t *testing.T) {
			s := &slowSink{want: c.most, fakeSink: fakeSink{name: c.name, props: sdk.SinkProperties{MaxInFlight: 3, MaxEvents: 1, Ordering: c.ordering}}}
			startDeliver(t, deliverConfig(), j, d, newSinks(s))
			eventually(t, "everything", func() bool { return committed(t, j, "sink/"+c.name).Count == 8 })
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.most != c.most {
				t.Errorf("%d batches at once, want %d", s.most, c.most)
			}
		})
	}
}

// slowSink counts how many calls run at once. Its calls wait until as many run as the
// test wants, and a little longer for one too many.
type slowSink struct {
	fakeSink
	want, now, most int
}

func (s *slowSink) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	for deadline := time.Now().Add(time.Minute); s.most < s.want && time.Now().Before(deadline); {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
	s.mu.Unlock()
	time.Sleep(3 * time.Millisecond)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return b.Committed(), nil
}

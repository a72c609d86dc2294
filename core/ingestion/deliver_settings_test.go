package ingestion_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/delivery"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// configured is a sink with a delivery section of its own.
type configured struct {
	*fakeSink
	own settings.Delivery
}

func (s configured) Delivery() (settings.Delivery, error) { return s.own, nil }

func TestDeliverFilters(t *testing.T) {
	t.Parallel()
	items := []string{
		`{"event":"$pageview","distinct_id":"a","properties":{"plan":"pro","n":5}}`,
		`{"event":"$pageleave","distinct_id":"a","properties":{"plan":"free"}}`,
		`{"event":"signed up","distinct_id":"b","properties":{"pl\u0061n":"pro"}}`,
		`{"event":"debug/x","distinct_id":"c"}`,
	}
	filter := func(s string) []map[string]any {
		var property map[string]any
		if err := json.Unmarshal([]byte(s), &property); err != nil {
			t.Fatal(err)
		}
		return []map[string]any{property}
	}
	cases := []struct {
		name string
		own  settings.Delivery
		want string
	}{
		{"nothing said is everything", settings.Delivery{}, "$pageview $pageleave signed up debug/x"},
		{"a star stands for anything", settings.Delivery{Events: settings.EventFilter{Include: []string{"$page*", "debug*"}}}, "$pageview $pageleave debug/x"},
		{"exclude wins", settings.Delivery{Events: settings.EventFilter{Include: []string{"*"}, Exclude: []string{"$page????", "*/x"}}}, "$pageleave signed up"},
		{"another project", settings.Delivery{Projects: settings.ProjectFilter{Include: []int64{2}}}, ""},
		{"not this project", settings.Delivery{Projects: settings.ProjectFilter{Exclude: []int64{1}}}, ""},
		{"a property, however its name is written", settings.Delivery{Properties: filter(`{"key":"plan","operator":"exact","value":["pro"]}`)}, "$pageview signed up"},
		{"a number", settings.Delivery{Properties: filter(`{"key":"n","operator":"gt","value":4,"type":"event"}`)}, "$pageview"},
		{"a property that is not there", settings.Delivery{Properties: filter(`{"key":"plan","operator":"is_not_set"}`)}, "debug/x"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			lay(t, j, false, items...)
			s := configured{&fakeSink{name: "one"}, c.own}
			del := startDeliver(t, deliverConfig(), j, d, newSinks(&s))
			eventually(t, "the cursor is behind all, sent or not", func() bool { return committed(t, j, "sink/one").Count == 4 })
			if s.has() != c.want {
				t.Errorf("got %q, want %q", s.has(), c.want)
			}
			status, err := del.Status(t.Context())
			if err != nil || status[0].Filtered+status[0].Delivered != 4 {
				t.Errorf("status %+v, %v", status, err)
			}
		})
	}
}

func TestDeliverSamplesDistinctIDs(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	var items []string
	for i := range 600 {
		items = append(items, fmt.Sprintf(`{"event":"u%d","distinct_id":"u%d"}`, i%300, i%300))
	}
	lay(t, j, false, items...)
	s := configured{&fakeSink{name: "one"}, settings.Delivery{Sample: 0.25}}
	startDeliver(t, deliverConfig(), j, d, newSinks(&s))
	eventually(t, "the cursor", func() bool { return committed(t, j, "sink/one").Count == 600 })
	times := map[string]int{}
	for _, id := range strings.Fields(s.has()) {
		times[id]++
	}
	for id, n := range times {
		if n != 2 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	// The sample must never change: the exact number is a promise.
	if n := len(times); n < 50 || n > 100 {
		t.Errorf("%d of 300 people in a sample of a quarter", n)
	}
}

func TestDeliverRedacts(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	lay(t, j, false, `{"event":"poison","distinct_id":"u","properties":{"em\u0061il":"a@b.c","n":1.50,"ip":"1.2.3.4",`+
		`"$set":{"email":"a@b.c","name":"N"},"$set_once":{"email":"a@b.c"},"$unset":["email","age"],"other":{"email":"kept"}}}`)
	s := configured{&fakeSink{name: "one", write: rejects(sdk.ClassPermanent)}, settings.Delivery{
		Redact: settings.Redaction{Remove: []string{"email"}, Hash: []string{"ip", "name"}, HashKey: "k"},
	}}
	startDeliver(t, deliverConfig(), j, d, newSinks(&s))
	eventually(t, "the dead letter", func() bool { return letters(t, d) == "poison" })
	var payload string
	if err := d.Read(t.Context()).NewRaw("SELECT payload FROM dead_letters").Scan(t.Context(), &payload); err != nil {
		t.Fatal(err)
	}
	sent := string(s.sent()[0].Records[0].JSON)
	for what, text := range map[string]string{"the plugin": sent, "the dead letter": payload} {
		for _, secret := range []string{"a@b.c", "1.2.3.4", `"N"`} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s: %s", what, secret, text)
			}
		}
		for _, part := range []string{`"n":1.50`, `"$unset":["age"]`, `"other":{"email":"kept"}`, `"$set_once":{}`, `"ip":"`} {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %s: %s", what, part, text)
			}
		}
	}
}

func TestDeliverRetryBudget(t *testing.T) {
	t.Parallel()
	budget := settings.Retry{Initial: time.Millisecond, Max: time.Millisecond, MaxAttempts: 3}
	partly := func(b *sdk.Batch) (sdk.WriteResult, error) {
		return b.Partial(sdk.Failure{Index: 0, Err: &sdk.Error{Class: sdk.ClassTransient, Code: "later", Message: "later"}}), nil
	}
	for name, write := range map[string]func(*sdk.Batch) (sdk.WriteResult, error){
		"all of a batch": rejects(sdk.ClassTransient), "a part of a batch": partly,
	} {
		t.Run(name+" is set aside", func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			lay(t, j, false, numbered(0, 2)...)
			s := configured{&fakeSink{name: "one", write: write}, settings.Delivery{Retry: budget}}
			startDeliver(t, deliverConfig(), j, d, newSinks(&s))
			eventually(t, "the cursor", func() bool { return committed(t, j, "sink/one").Count == 2 })
			if n := len(s.sent()); n != 3 {
				t.Errorf("%d tries", n)
			}
			if got := letters(t, d); !strings.HasPrefix(got, "0") {
				t.Errorf("dead letters %q", got)
			}
		})
	}
	t.Run("an age is enough", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		lay(t, j, false, numbered(0, 2)...)
		s := configured{&fakeSink{name: "one", write: rejects(sdk.ClassTransient)}, settings.Delivery{Retry: settings.Retry{MaxAge: 20 * time.Millisecond}}}
		startDeliver(t, deliverConfig(), j, d, newSinks(&s))
		eventually(t, "the dead letters", func() bool { return letters(t, d) == "0 1" })
	})
	t.Run("holding pauses the sink until it is resumed", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		lay(t, j, false, numbered(0, 2)...)
		held := budget
		held.OnExhausted = "hold"
		s := configured{&fakeSink{name: "one", write: rejects(sdk.ClassTransient)}, settings.Delivery{Retry: held}}
		del := startDeliver(t, deliverConfig(), j, d, newSinks(&s))
		eventually(t, "the pause", func() bool { return paused(t, del) != nil })
		stopDeliver(t, del)
		del = startDeliver(t, deliverConfig(), j, d, newSinks(&s))
		eventually(t, "the pause is remembered", func() bool { return paused(t, del) != nil })
		s.mu.Lock()
		s.write = nil
		s.mu.Unlock()
		if err := del.Resume(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "everything", func() bool { return s.has() == "0 1" })
		if got := letters(t, d); got != "" {
			t.Errorf("dead letters %q", got)
		}
	})
}

func paused(tb testing.TB, del *delivery.Service) *delivery.Pause {
	tb.Helper()
	status, err := del.Status(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return status[0].Paused
}

func TestDeliverPause(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, testPause)
}

func testPause(t *testing.T, d *db.DB) {
	j := openJournal(t, t.TempDir())
	s, other := &fakeSink{name: "one"}, &fakeSink{name: "two"}
	del := startDeliver(t, deliverConfig(), j, d, newSinks(s, other))
	lay(t, j, false, numbered(0, 2)...)
	eventually(t, "the first", func() bool { return s.has() == "0 1" && other.has() == "0 1" })
	if err := del.Pause(t.Context(), "one", "the warehouse moves"); err != nil {
		t.Fatal(err)
	}
	lay(t, j, false, numbered(2, 4)...)
	eventually(t, "the other goes on", func() bool { return other.has() == "0 1 2 3" })
	stopDeliver(t, del)
	del = startDeliver(t, deliverConfig(), j, d, newSinks(s, other))
	eventually(t, "it is remembered", func() bool { p := paused(t, del); return p != nil && p.Reason == "the warehouse moves" })
	status, err := del.Status(t.Context())
	if err != nil || status[0].State != "paused" || status[0].LagRecords != 1 || status[1].Paused != nil || s.has() != "0 1" {
		t.Errorf("status %+v, %v; has %q", status, err, s.has())
	}
	for range 2 { // the second time there is nothing to do
		if err := del.Resume(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the rest", func() bool { return s.has() == "0 1 2 3" })
	if err := del.Pause(t.Context(), "three", ""); fault.KindOf(err) != fault.NotFound {
		t.Errorf("pausing nobody: %v", err)
	}
	stopDeliver(t, del)
	del = startDeliver(t, deliverConfig(), j, d, newSinks(s, other))
	lay(t, j, false, numbered(4, 5)...)
	eventually(t, "it stays resumed", func() bool { return s.has() == "0 1 2 3 4" && paused(t, del) == nil })
}

func TestDeliverReportsAnInvalidSection(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	lay(t, j, false, numbered(0, 2)...)
	s := configured{&fakeSink{name: "one"}, settings.Delivery{Sample: 2, Properties: []map[string]any{{"key": "a", "operator": "like"}}}}
	sinks := newSinks(&s)
	del := startDeliver(t, deliverConfig(), j, d, sinks)
	eventually(t, "it says so", func() bool {
		status, err := del.Status(t.Context())
		return err == nil && status[0].State == "misconfigured" && strings.Contains(status[0].LastError, "delivery.sample") &&
			strings.Contains(status[0].LastError, "delivery.properties[0]")
	})
	if s.has() != "" {
		t.Errorf("sent %q", s.has())
	}
	repaired := configured{s.fakeSink, settings.Delivery{}}
	sinks.set(&repaired)
	eventually(t, "everything", func() bool { return s.has() == "0 1" })
}

func TestDeliverReportsASinkThatNeverFlushes(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	lay(t, j, false, numbered(0, 8)...)
	s := newStager()
	s.flush = func(uint64) (sdk.FlushResult, error) { return sdk.FlushResult{}, nil }
	del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "it is seen", func() bool {
		status, err := del.Status(t.Context())
		return err == nil && status[0].State == "not_flushing" && status[0].LagRecords > 0
	})
	if at := committed(t, j, "sink/stager"); at.Count != 0 {
		t.Errorf("committed %+v", at)
	}
}

// A new sink whose delivery section is wrong gets the events that were accepted before the
// correction.
func TestSinkWithAnInvalidSectionKeepsItsPlace(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	lay(t, j, false, numbered(0, 2)...)
	cfg := deliverConfig()
	cfg.Deliver.Start = "end"
	sinks := newSinks()
	del := startDeliver(t, cfg, j, d, sinks)
	s := configured{&fakeSink{name: "one"}, settings.Delivery{Sample: 2}}
	sinks.set(&s)
	eventually(t, "it says so", func() bool {
		status, err := del.Status(t.Context())
		return err == nil && len(status) == 1 && status[0].State == "misconfigured"
	})
	lay(t, j, false, numbered(2, 5)...)
	repaired := configured{s.fakeSink, settings.Delivery{}}
	sinks.set(&repaired)
	eventually(t, "the events since it was added", func() bool { return s.has() == "2 3 4" })
}

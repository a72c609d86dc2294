package retention

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

// world is a service with events of two projects.
type world struct {
	*Service
	t testing.TB
}

func newWorld(t testing.TB, d *db.DB, setting time.Duration) *world {
	e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
	return &world{New(setting, d, e, zap.NewNop(), nil), t}
}

// add stores an event of a name for each age in days.
func (w *world) add(projectID int64, name string, ages ...int) {
	w.t.Helper()
	var batch []*sdk.Event
	for _, age := range ages {
		at := time.Now().Add(-time.Duration(age)*day - time.Minute)
		batch = append(batch, &sdk.Event{
			UUID: uuid.Must(uuid.NewV7()).String(), ProjectID: projectID, Name: name, DistinctID: "u", Timestamp: at, ReceivedAt: at,
			Properties: json.RawMessage(`{}`),
		})
	}
	if _, err := w.events.Store(w.t.Context(), batch); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) set(projectID int64, r Rules) {
	w.t.Helper()
	if err := w.SetRules(w.t.Context(), projectID, r); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run() {
	w.t.Helper()
	if err := w.Run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// has checks the number of the stored events of a name.
func (w *world) has(projectID int64, name string, want int64) {
	w.t.Helper()
	n, err := w.events.Count(w.t.Context(), projectID, events.Filter{Event: name})
	if err != nil || n != want {
		w.t.Errorf("project %d has %d events %q, want %d (%v)", projectID, n, name, want, err)
	}
}

// countingCounter calls seen after each addition.
type countingCounter struct {
	prometheus.Counter
	seen func()
}

func (c countingCounter) Add(n float64) {
	c.Counter.Add(n)
	c.seen()
}

func days(n int) *time.Duration {
	d := time.Duration(n) * day
	return &d
}

func TestTheMostSpecificRuleWins(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		for _, c := range []struct {
			about   string
			setting time.Duration
			rules   Rules
			kept    map[string]int64 // of events that are 1, 20, 40 and 400 days old
		}{
			{"no rule", 0, Rules{}, map[string]int64{"a": 4, "b": 4, "c": 4}},
			{"setting", 30 * day, Rules{}, map[string]int64{"a": 2, "b": 2, "c": 2}},
			{"project over setting", 30 * day, Rules{Keep: days(50)}, map[string]int64{"a": 3, "b": 3, "c": 3}},
			{"project for ever", 30 * day, Rules{Keep: days(0)}, map[string]int64{"a": 4, "b": 4, "c": 4}},
			{"only a name", 0, Rules{Events: map[string]time.Duration{"a": 10 * day}}, map[string]int64{"a": 1, "b": 4, "c": 4}},
			{"a shorter name", 0, Rules{Keep: days(30), Events: map[string]time.Duration{"a": 10 * day}}, map[string]int64{"a": 1, "b": 2, "c": 2}},
			{"a longer and a shorter name", 0, Rules{Keep: days(30), Events: map[string]time.Duration{"a": 0, "b": 10 * day}}, map[string]int64{"a": 4, "b": 1, "c": 2}},
			{"equal name", 30 * day, Rules{Events: map[string]time.Duration{"a": 30 * day, "b": 50 * day}}, map[string]int64{"a": 2, "b": 3, "c": 2}},
		} {
			w := newWorld(t, d, c.setting)
			clear := Rules{Events: map[string]time.Duration{"a": time.Hour, "b": time.Hour, "c": time.Hour}}
			w.set(1, clear)
			w.run()
			w.set(1, c.rules)
			var want int64
			for name, n := range c.kept {
				w.add(1, name, 1, 20, 40, 400)
				want += 4 - n
			}
			p, err := w.Preview(t.Context(), 1, c.rules)
			if err != nil || p.Events != want {
				t.Errorf("%s: the preview has %d events, want %d (%v)", c.about, p.Events, want, err)
			}
			w.run()
			for name, n := range c.kept {
				w.has(1, name, n)
			}
			at, ok, err := w.events.Oldest(t.Context(), 1, "", time.Time{})
			if err != nil || !ok || !at.Equal(p.OldestKept) {
				t.Errorf("%s: the oldest event is of %v, the preview has %v (%v)", c.about, at, p.OldestKept, err)
			}
			if t.Failed() {
				t.Fatalf("with the rules of %q", c.about)
			}
		}
	})
}

// Rules that are set in a transaction, as the API does to log the change, hold at its end,
// and not before.
func TestRulesOfATransaction(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		w := newWorld(t, d, 0)
		core, logs := observer.New(zap.WarnLevel)
		w.log = zap.New(core)
		for _, keep := range []int{30, 20} {
			err := d.Tx(t.Context(), func(ctx context.Context) error {
				before := w.KeptSince(1, nil)
				err := w.SetRules(ctx, 1, Rules{Keep: days(keep)})
				if at := w.KeptSince(1, nil); at.Sub(before) > time.Minute {
					t.Errorf("kept since %v before the commit", at)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if age := time.Since(w.KeptSince(1, nil)).Round(time.Hour); age != time.Duration(keep)*day {
				t.Errorf("events are kept for %v, want %d days", age, keep)
			}
		}
		for _, l := range logs.All() {
			t.Errorf("warning %q: %v", l.Message, l.ContextMap())
		}
	})
}

func TestOtherProjectsKeepTheirEvents(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		w := newWorld(t, d, 0)
		w.add(1, "a", 1, 40)
		w.add(2, "a", 1, 40)
		w.set(2, Rules{Keep: days(30)})
		w.run()
		w.has(1, "a", 2)
		w.has(2, "a", 1)
	})
}

// A run that a stop interrupts has deleted whole chunks, and the next run corrects the
// counts for the time of both.
func TestInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		w := newWorld(t, d, 30*day)
		const total = 3*chunk + 7
		for range total / 100 {
			ages := make([]int, 100)
			for i := range ages {
				ages[i] = 31 + i
			}
			w.add(1, "a", ages...)
		}
		w.add(1, "a", 1)
		var corrected []events.Expired
		w.events.OnExpire(func(_ context.Context, e *events.Expired) error {
			corrected = append(corrected, *e)
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		n := 0
		w.metrics.deleted = countingCounter{w.metrics.deleted, func() {
			if n++; n == 2 {
				stop()
			}
		}}
		if err := w.Run(ctx); err == nil {
			t.Fatal("a run that was stopped has no error")
		}
		if len(corrected) > 0 {
			t.Fatal("counts were corrected before the end")
		}
		open, err := w.store.run(t.Context(), 1)
		if err != nil || open == nil || !open.FinishedAt.IsZero() || open.Deleted != 2*chunk {
			t.Fatalf("%+v %v, want an open run with %d events", open, err, 2*chunk)
		}
		again := newWorld(t, d, 30*day)
		again.events.OnExpire(func(_ context.Context, e *events.Expired) error {
			corrected = append(corrected, *e)
			return nil
		})
		again.run()
		again.has(1, "a", 1)
		if len(corrected) != 1 || !corrected[0].From.Equal(open.FromAt.Time) || corrected[0].To.Before(open.ToAt.Time) {
			t.Errorf("corrected %+v, want the time from %v", corrected, open.FromAt)
		}
		done, err := again.store.run(t.Context(), 1)
		if err != nil || done.FinishedAt.IsZero() || done.Deleted != total/100*100 {
			t.Errorf("%+v %v", done, err)
		}
		again.run() // nothing to do
		if len(corrected) != 1 {
			t.Errorf("a run without old events corrected counts: %+v", corrected)
		}
	})
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	w := newWorld(t, d, 0)
	if err := w.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.TooOld() != nil {
		t.Error("without rules every event is looked at")
	}
	w.set(1, Rules{Keep: days(30), Events: map[string]time.Duration{"a": 0, "b": day}})
	tooOld := w.TooOld()
	for _, c := range []struct {
		project int64
		name    string
		age     time.Duration
		want    bool
	}{
		{1, "x", 29 * day, false}, {1, "x", 31 * day, true}, {1, "a", 3000 * day, false}, {1, "b", 2 * day, true}, {2, "x", 3000 * day, false},
	} {
		_, got := tooOld(&sdk.Event{ProjectID: c.project, Name: c.name, Timestamp: time.Now().Add(-c.age)})
		if got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestParseAge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"0": 0, "0s": 0, "90d": 90 * day, "36h": 36 * time.Hour, " 1h ": time.Hour, "1h30m": 90 * time.Minute} {
		got, err := ParseAge(text)
		if err != nil || got != want {
			t.Errorf("%q is %v (%v), want %v", text, got, err, want)
		}
		if back, err := ParseAge(FormatAge(got)); err != nil || back != got {
			t.Errorf("%v is written %q, which is %v (%v)", got, FormatAge(got), back, err)
		}
	}
	for _, text := range []string{"", "90", "-1d", "59m", "36501d", "99999999999d", "d", "1.5d", "ever"} {
		if d, err := ParseAge(text); err == nil {
			t.Errorf("%q is %v, want an error", text, d)
		}
	}
	if got := fmt.Sprint(FormatAge(36*time.Hour), FormatAge(90*time.Minute)); got != "36h1h30m" {
		t.Error(got)
	}
}

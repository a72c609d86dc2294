package ingestion_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/trace"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

func TestTrace(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	stages, store := dataStages(t, d)
	poison := namedStage{"poison", func(_ context.Context, batch []*sdk.Event) error {
		for _, e := range batch {
			if e.Name == "poison" {
				return errors.New("cannot take it")
			}
		}
		return nil
	}}
	good := &fakeSink{name: "good"}
	picky := &fakeSink{name: "picky", write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		if strings.Contains(string(b.NDJSON()), `"event":"disliked"`) {
			return rejects(sdk.ClassPermanent)(b)
		}
		return b.Committed(), nil
	}}
	stuck := &fakeSink{name: "stuck", write: rejects(sdk.ClassTransient)}
	w := startWorker(t, workerConfig(), j, d, store, append(stages, poison)...)
	choosy := configured{&fakeSink{name: "choosy"}, settings.Delivery{Events: settings.EventFilter{Exclude: []string{"fine"}}}}
	del := startDeliver(t, deliverConfig(), j, d, newSinks(good, picky, stuck, choosy))
	id := func(n int) string { return fmt.Sprintf("0190a5a2-7b3c-4000-8000-%012d", n) }
	item := func(n int, name, rest string) string {
		return fmt.Sprintf(`{"event":"%s","uuid":"%s"%s}`, name, id(n), rest)
	}
	now := func(items ...string) {
		rec := ingestiontest.Record("[" + strings.Join(items, ",") + "]")
		rec.ReceivedAt = time.Now()
		if _, err := j.Append(t.Context(), rec.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	now(item(1, "fine", `,"distinct_id":"u","timestamp":"soon"`), item(2, "disliked", `,"distinct_id":"u"`))
	now(item(3, "no id", ``), item(4, "poison", `,"distinct_id":"u"`))
	eventually(t, "the dead letters", func() bool { return w.Status().Position.Seq == 2 && len(strings.Fields(letters(t, d))) == 2 })
	eventually(t, "the cursors", func() bool {
		return committed(t, j, "sink/picky").Seq == 2 && committed(t, j, "sink/good").Seq == 2 && committed(t, j, "sink/choosy").Seq == 2 && committed(t, j, "worker").Seq == 2
	})
	base := webtest.Serve(t, keys(), trace.NewHTTP(trace.NewTracer(event.DefaultLimits(), d, j, store).WithReaders(w, del).WithFilters(del.SkipReason)))
	eventually(t, "what keeps the one that is stuck", func() bool {
		got := ask(t, "GET", base+"/api/projects/1/events/"+id(1)+"/trace/", "", 200)
		stuck := got["sinks"].([]any)[3].(map[string]any)
		return stuck["name"] == "stuck" && strings.Contains(fmt.Sprint(stuck["error"]), "no")
	})
	cases := []struct {
		n                                                    int
		state, worker, good, choosy, picky, stuck, said, who string
	}{
		{1, "stored", "done", "done", "skipped event", "done", "waiting", "ignored_invalid_timestamp", "u"},
		{2, "stored", "done", "done", "done", "dead_letter", "waiting", "", "u"},
		{3, "dropped", "done", "done", "done", "done", "waiting", "skipping_event_invalid_distinct_id", ""},
		{4, "dead_letter", "dead_letter", "done", "done", "done", "waiting", "", "u"},
	}
	for _, c := range cases {
		got := ask(t, "GET", base+"/api/projects/1/events/"+strings.ToUpper(id(c.n))+"/trace/", "", 200)
		sinks := map[string]string{}
		for _, s := range got["sinks"].([]any) {
			one := s.(map[string]any)
			reason, _ := one["reason"].(string)
			sinks[one["name"].(string)] = strings.TrimSpace(one["state"].(string) + " " + reason)
		}
		said := ""
		for _, n := range got["notices"].([]any) {
			said += n.(map[string]any)["type"].(string)
		}
		if got["state"] != c.state || got["worker"].(map[string]any)["state"] != c.worker || said != c.said || got["distinct_id"] != c.who ||
			sinks["good"] != c.good || sinks["choosy"] != c.choosy || sinks["picky"] != c.picky || sinks["stuck"] != c.stuck {
			t.Errorf("event %d: %v", c.n, got)
		}
		place := got["accepted"].(map[string]any)
		if seq := 1 + (c.n-1)/2; place["journal_seq"] != float64(seq) || place["index"] != float64((c.n-1)%2) {
			t.Errorf("event %d is at %v", c.n, place)
		}
	}
	ask(t, "GET", base+"/api/projects/1/events/"+id(9)+"/trace/", "", 404)
	ask(t, "GET", base+"/api/projects/7/events/"+id(1)+"/trace/", "", 404)
	ask(t, "GET", base+"/api/projects/1/events/x/trace/", "", 404)
}

// A sink that was added after an event, and was sent none since, has not delivered it.
func TestTraceOfASinkWithoutEvents(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	add := func(n int) string {
		id := fmt.Sprintf("0190a5a2-7b3c-4000-8000-%012d", n)
		rec := ingestiontest.Record(`[{"event":"e","distinct_id":"u","uuid":"` + id + `"}]`)
		rec.ReceivedAt = time.Now()
		if _, err := j.Append(t.Context(), rec.Append(nil)); err != nil {
			t.Fatal(err)
		}
		return id
	}
	before, cfg := add(1), deliverConfig()
	cfg.Deliver.Start = "end"
	startDeliver(t, cfg, j, d, newSinks(&fakeSink{name: "late"}))
	tracer := trace.NewTracer(event.DefaultLimits(), d, j, nil)
	want := func(id, state, reason string) {
		t.Helper()
		eventually(t, state, func() bool {
			got, err := tracer.Trace(t.Context(), 1, id)
			return err == nil && len(got.Sinks) == 1 && got.Sinks[0].State == state && got.Sinks[0].Reason == reason
		})
	}
	want(before, "skipped", "no_events")
	want(add(2), "done", "")
}

// An import that a sink has not received is not done when the cursor of live events
// is behind it.
func TestTraceOfAnImport(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	stages, store := dataStages(t, d)
	release := make(chan struct{})
	s := &fakeSink{name: "one", write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		if strings.Contains(string(b.NDJSON()), `"event":"past"`) {
			select {
			case <-release:
			default:
				return rejects(sdk.ClassTransient)(b)
			}
		}
		return b.Committed(), nil
	}}
	const id = "0190a5a2-7b3c-4000-8000-000000000001"
	rec := ingestiontest.Record(`[{"event":"past","distinct_id":"u","uuid":"` + id + `"}]`)
	rec.Historical, rec.ReceivedAt = true, time.Now()
	if _, err := j.Append(t.Context(), rec.Append(nil)); err != nil {
		t.Fatal(err)
	}
	accept(t, j, "live")
	w := startWorker(t, workerConfig(), j, d, store, stages...)
	del := startDeliver(t, deliverConfig(), j, d, newSinks(s)) // sends live events first
	eventually(t, "what is sent live has gone past", func() bool { return committed(t, j, "sink/one").Seq == 2 && s.has() == "live" })
	base := webtest.Serve(t, keys(), trace.NewHTTP(trace.NewTracer(event.DefaultLimits(), d, j, store).WithReaders(w, del)))
	sink := func() map[string]any {
		got := ask(t, "GET", base+"/api/projects/1/events/"+id+"/trace/", "", 200)
		return got["sinks"].([]any)[0].(map[string]any)
	}
	if got := sink(); got["state"] != "waiting" {
		t.Errorf("an import that was refused is %v", got)
	}
	close(release)
	eventually(t, "the import is there", func() bool { return sink()["state"] == "done" && s.has() == "live past" })
}

package flags_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/events/flagcalls"
	"github.com/guidonhq/guidon/core/flags/calls"
	"github.com/guidonhq/guidon/sdk"
)

// callCounter counts calls by key; it does not reach keys that it does not have.
type callCounter struct {
	counts map[string][]flagcalls.Count
	err    error
	asked  []flagcalls.Query
}

func (c *callCounter) Counts(_ context.Context, q *flagcalls.Query, fn flagcalls.Visit) error {
	c.asked = append(c.asked, *q)
	for _, key := range q.Keys {
		if counts, ok := c.counts[key]; ok {
			fn(key, flagcalls.Result{Counted: true, Counts: counts})
		}
	}
	return c.err
}

type callsAnswer struct {
	Interval  string
	Intervals []time.Time
	Results   []struct {
		ID       int64
		Key      string
		Counted  bool
		Calls    int64
		Variants []struct {
			Response string
			Calls    int64
			Data     []int64
		}
	}
}

// called records that flags were called.
func (h *server) called(at time.Time, keys ...string) {
	h.t.Helper()
	batch := make([]*sdk.Event, len(keys))
	for i, key := range keys {
		batch[i] = event(calls.Event, `{"$feature_flag":"`+key+`"}`, at)
	}
	if err := calls.NewStage(calls.NewStore(h.db), h.revisions, projects{}).Process(h.t.Context(), batch); err != nil {
		h.t.Fatal(err)
	}
}

func TestCallsOfFlags(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		now := time.Date(2024, 5, 31, 13, 30, 0, 0, time.UTC)
		h.at(now)
		nav, heavy, quiet := h.create(`{"key":"nav"}`), h.create(`{"key":"heavy"}`), h.create(`{"key":"quiet"}`)
		gone := h.create(`{"key":"gone"}`)
		h.called(now.Add(-time.Hour), "nav", "heavy", "gone")
		h.called(now.Add(-30*24*time.Hour), "quiet")
		h.do("PATCH", base+itoa(gone.ID)+"/", `{"deleted":true}`).want(200)
		h.series.counts = map[string][]flagcalls.Count{"nav": {{Interval: 0, Response: "false", Calls: 2}, {Interval: 6, Response: "true", Calls: 5}}}
		var got callsAnswer
		h.do("GET", base+"calls?ids="+itoa(nav.ID)+","+itoa(heavy.ID)+","+itoa(quiet.ID)+","+itoa(gone.ID)+",999", "").want(200).into(&got)
		if got.Interval != "day" || len(got.Intervals) != 7 || !got.Intervals[6].Equal(now.Truncate(24*time.Hour)) || len(got.Results) != 3 {
			t.Fatalf("answer %+v", got)
		}
		for _, r := range got.Results {
			switch r.ID {
			case nav.ID:
				if !r.Counted || r.Calls != 7 || len(r.Variants) != 2 || r.Variants[0].Response != "true" || !slices.Equal(r.Variants[0].Data, []int64{0, 0, 0, 0, 0, 0, 5}) || r.Variants[1].Data[0] != 2 {
					t.Errorf("nav: %+v", r)
				}
			case heavy.ID:
				if r.Counted || r.Calls != 0 {
					t.Errorf("a flag that could not be counted: %+v", r)
				}
			case quiet.ID:
				if !r.Counted || r.Calls != 0 || r.Variants == nil {
					t.Errorf("a flag without calls in the time: %+v", r)
				}
			}
		}
		if q := h.series.asked[0]; len(q.Keys) != 2 || slices.Contains(q.Keys, "quiet") || q.To.Sub(q.From) != 7*24*time.Hour || q.ProjectID != 1 {
			t.Errorf("asked %+v", q)
		}
		got = callsAnswer{}
		h.do("GET", base+"calls", "").want(200).into(&got)
		if len(got.Results) != 2 {
			t.Errorf("flags that were called in 7 days: %+v", got.Results)
		}
		got = callsAnswer{}
		h.series.counts = map[string][]flagcalls.Count{"nav": {{Interval: 24, Response: "true", Calls: 1}}}
		h.do("GET", base+itoa(nav.ID)+"/calls/?interval=hour&days=2", "").want(200).into(&got)
		if got.Interval != "hour" || len(got.Intervals) != 48 || !got.Intervals[47].Equal(now.Truncate(time.Hour)) || len(got.Results) != 1 || got.Results[0].Variants[0].Data[24] != 1 {
			t.Errorf("hours: %+v", got)
		}
		h.do("GET", base+itoa(gone.ID)+"/calls/", "").want(404)
		h.do("GET", "/api/projects/2/feature_flags/"+itoa(nav.ID)+"/calls/", "").want(404)
	})
}

func TestCallsOfFlagsRefuse(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	f := h.create(`{"key":"nav"}`)
	for query, attr := range map[string]string{
		"?days=0": "days", "?days=93": "days", "?interval=hour&days=15": "days", "?interval=week": "interval", "?ids=1,a": "ids", "?ids=0": "ids",
		"?ids=" + strings.TrimSuffix(strings.Repeat("1,", 300), ",") + ",": "ids",
	} {
		if a := h.do("GET", base+"calls"+query, "").want(400); !strings.Contains(string(a.body), `"attr":"`+attr+`"`) {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	h.called(time.Now(), "nav")
	h.series.err = errors.New("no place")
	h.do("GET", base+itoa(f.ID)+"/calls/", "").want(500)
	h.key = ""
	h.do("GET", base+"calls", "").want(401)
}

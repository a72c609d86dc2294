package events_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/flagcalls"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// flagCall returns an event that reports a call.
func flagCall(project int64, flag, response string, at time.Time) *sdk.Event {
	id, _ := uuid.NewV7()
	return &sdk.Event{UUID: id.String(), ProjectID: project, Name: flagcalls.Event, DistinctID: "ada", Timestamp: at, ReceivedAt: at,
		Properties: json.RawMessage(fmt.Sprintf(`{"$feature_flag":%q,"$feature_flag_response":%q}`, flag, response))}
}

func TestFlagCalls(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := open(t, events.DefaultConfig(), d)
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		hour := func(n int) time.Time { return from.Add(time.Duration(n) * time.Hour) }
		batch := []*sdk.Event{
			flagCall(1, "nav", "true", from.Add(-time.Microsecond)), flagCall(1, "nav", "true", from), flagCall(1, "nav", "true", hour(1).Add(-time.Microsecond)),
			flagCall(1, "nav", "false", hour(1)), flagCall(1, "nav", "true", hour(3)), flagCall(1, "it's", "b", hour(2)),
			flagCall(1, "unasked", "true", hour(1)), flagCall(2, "nav", "true", hour(1)),
			{UUID: uuid.NewString(), ProjectID: 1, Name: "$pageview", DistinctID: "ada", Timestamp: hour(1), ReceivedAt: hour(1), Properties: json.RawMessage(`{"$feature_flag":"nav"}`)},
		}
		if _, err := s.Process(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		counter := flagcalls.New(d, s)
		q := &flagcalls.Query{ProjectID: 1, Keys: []string{"nav", "it's", "quiet"}, From: from, To: hour(3), Width: time.Hour, Budget: time.Minute}
		got, err := countCalls(t.Context(), counter, q)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]flagcalls.Count{
			"nav": {{Interval: 0, Response: "true", Calls: 2}, {Interval: 1, Response: "false", Calls: 1}}, "it's": {{Interval: 2, Response: "b", Calls: 1}}, "quiet": {},
		}
		if len(got) != len(want) {
			t.Errorf("counts %v", got)
		}
		for key, counts := range want {
			if r := got[key]; !r.Counted || !slices.Equal(r.Counts, counts) {
				t.Errorf("%s: %v, want %v", key, r, counts)
			}
		}
		over, reached := *q, 1 // only the first key is read for the whole budget
		if _, ok := s.Backend().(flagcalls.Backend); ok {
			reached = len(q.Keys) // in one query
		}
		over.Budget = -time.Second
		if got, err := countCalls(t.Context(), counter, &over); err != nil || len(got) != reached || got["nav"].Counted {
			t.Errorf("after the budget: %v, %v; want %d keys that are not counted", got, err, reached)
		}
		canceled, stop := context.WithCancel(t.Context())
		stop()
		if got, err := countCalls(canceled, counter, q); err == nil || len(got) != 0 {
			t.Errorf("a canceled request gets %v, %v", got, err)
		}
		ended, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		if got, err := countCalls(ended, counter, q); err == nil || len(got) != 0 {
			t.Errorf("a request whose time is over gets %v, %v", got, err)
		}
	})
}

// countCalls returns the results by key, with their counts in the order of time.
func countCalls(ctx context.Context, c *flagcalls.Counter, q *flagcalls.Query) (map[string]flagcalls.Result, error) {
	got := map[string]flagcalls.Result{}
	err := c.Counts(ctx, q, func(key string, r flagcalls.Result) {
		r.Counts = slices.SortedFunc(slices.Values(r.Counts), func(a, b flagcalls.Count) int { return cmp.Compare(a.Interval, b.Interval) })
		got[key] = r
	})
	return got, err
}

// The budget begins with the place: a wait for it takes nothing of the budget, and without
// one the request is refused.
func TestFlagCallsWaitForAPlace(t *testing.T) {
	d := dbtest.SQLite(t)
	counter := flagcalls.New(d, open(t, events.DefaultConfig(), d))
	q := &flagcalls.Query{ProjectID: 1, Keys: []string{"nav"}, From: time.Unix(0, 0), To: time.Unix(3600, 0), Width: time.Hour, Budget: time.Minute}
	var refuse func(depth int) error
	refuse = func(depth int) error { // takes all places that scans of the project can have
		return d.RunScan(context.WithoutCancel(t.Context()), 1, func(context.Context) error {
			if depth < 64 {
				short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				got, err := countCalls(short, counter, q)
				if err == nil {
					return refuse(depth + 1)
				}
				if !fault.Is(err, fault.Unavailable) || len(got) != 0 {
					t.Errorf("without a place: %v, %v", got, err)
				}
				return nil
			}
			t.Error("there are always places")
			return nil
		})
	}
	if err := refuse(0); err != nil {
		t.Error(err)
	}
}

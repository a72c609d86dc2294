package events_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func id(n int) string {
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "event %d", n)).String()
}

// ev is the n-th event of project 1, n minutes after start.
func ev(n int, name, distinctID, properties string) *sdk.Event {
	at := start.Add(time.Duration(n) * time.Minute)
	return &sdk.Event{
		UUID: id(n), ProjectID: 1, Name: name, DistinctID: distinctID, Timestamp: at,
		ReceivedAt: at.Add(time.Second), Properties: json.RawMessage(properties),
	}
}

func service(t testing.TB, d *db.DB) *events.Service {
	t.Helper()
	cfg := events.DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return open(t, cfg, d)
}

// open makes the store under test. With the build tag e2e it is ClickHouse where d is
// PostgreSQL.
var open = func(_ testing.TB, cfg events.Config, d *db.DB) *events.Service {
	return events.New(cfg, d, zap.NewNop(), nil)
}

func store(t testing.TB, s *events.Service, batch ...*sdk.Event) []bool {
	t.Helper()
	fresh, err := s.Store(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

func TestEventRoundTrip(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		for _, c := range []struct{ name, properties, chain, person string }{
			{"digits and order stay", `{"b":1.10,"a":12345678901234567890, "c":[1e5]}`, "", ""},
			{"an element chain", `{}`, `a.btn:href="/x"`, ""},
			{"a person", `{}`, "", uuid.NewString()},
			{"no properties at all", `{}`, "", ""},
			{"texts of every kind", `{"$current_url":"https://é.example/💻","x":"\u0000 \ud83d"}`, "", ""},
			{"an address too long for its column", `{"$current_url":"https://a.example/` + strings.Repeat("ü", 3000) + `"}`, "", ""},
			{"hot properties of the wrong type", `{"$current_url":7,"$host":null,"$pathname":[]}`, "", ""},
			{"a flag call", `{"$feature_flag":"` + strings.Repeat("f", 900) + `","$feature_flag_response":{"a":1}}`, "", ""},
		} {
			want := ev(len(c.name), "$feature_flag_called", strings.Repeat("ü", 200), c.properties)
			want.UUID, want.ElementsChain, want.PersonID = uuid.NewString(), c.chain, c.person
			store(t, s, want)
			got, err := s.Get(t.Context(), 1, want.UUID)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if g, w := asJSON(t, got), asJSON(t, *want); g != w {
				t.Errorf("%s\ngot  %s\nwant %s", c.name, g, w)
			}
			if string(got.Properties) != c.properties {
				t.Errorf("%s: properties %s", c.name, got.Properties)
			}
		}
	})
}

func asJSON(t testing.TB, e sdk.Event) string {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDuplicateEventIsStoredOnce(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		a, b, c := ev(1, "first", "u", `{}`), ev(2, "x", "u", `{}`), ev(3, "x", "u", `{}`)
		again := ev(1, "second", "v", `{"other":true}`)
		elsewhere := ev(1, "x", "u", `{}`)
		elsewhere.ProjectID = 2
		if got := store(t, s, a, again, b, elsewhere); !slices.Equal(got, []bool{true, false, true, true}) {
			t.Fatalf("in one batch: %v", got)
		}
		if got := store(t, s, c, b, a); !slices.Equal(got, []bool{true, false, false}) {
			t.Fatalf("in the next batch: %v", got)
		}
		n, err := s.Process(t.Context(), []*sdk.Event{a, b, ev(4, "x", "u", `{}`)})
		if err != nil || n != 1 {
			t.Fatalf("stored %d, %v; want 1", n, err)
		}
		if got, err := s.Get(t.Context(), 1, a.UUID); err != nil || got.Name != "first" {
			t.Fatalf("the first one stays: %+v %v", got, err)
		}
	})
}

func TestRolledBackBatchStoresNothing(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		bad := ev(2, "x", "u", `{}`)
		bad.UUID = "no uuid"
		if _, err := s.Store(t.Context(), []*sdk.Event{ev(1, "x", "u", `{}`), bad}); err == nil {
			t.Fatal("a uuid that is none was stored")
		}
		if n, err := s.Count(t.Context(), 1, events.Filter{}); err != nil || n != 0 {
			t.Fatalf("%d events, %v", n, err)
		}
	})
}

func TestList(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		var batch []*sdk.Event
		for n := range 20 {
			batch = append(batch, ev(n, []string{"a", "b"}[n%2], fmt.Sprintf("u%d", n%3), `{}`))
		}
		slices.Reverse(batch) // arrival is not the order of a list
		store(t, s, batch...)
		at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
		for _, c := range []struct {
			name   string
			filter events.Filter
			want   []int
		}{
			{"newest first", events.Filter{}, []int{19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
			{"by name", events.Filter{Event: "a"}, []int{18, 16, 14, 12, 10, 8, 6, 4, 2, 0}},
			{"by distinct id", events.Filter{DistinctID: "u1"}, []int{19, 16, 13, 10, 7, 4, 1}},
			{"by both", events.Filter{Event: "a", DistinctID: "u1"}, []int{16, 10, 4}},
			{"after and before leave out their moment", events.Filter{After: at(5), Before: at(8)}, []int{7, 6}},
			{"of an unknown name", events.Filter{Event: "z"}, nil},
		} {
			var got []int
			f := c.filter
			for pages := 0; ; pages++ {
				page, next, err := s.List(t.Context(), 1, f, 3)
				if err != nil || pages > 20 {
					t.Fatal(c.name, pages, err)
				}
				for _, e := range page {
					got = append(got, int(e.Timestamp.Sub(start)/time.Minute))
				}
				if next == (events.Cursor{}) {
					break
				}
				f.Cursor = next
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
			if n, err := s.Count(t.Context(), 1, c.filter); err != nil || int(n) != len(c.want) {
				t.Errorf("%s: counted %d, want %d (%v)", c.name, n, len(c.want), err)
			}
		}
	})
}

func TestListWithEqualTimestamps(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		for n := range 7 {
			e := ev(0, "x", "u", `{}`)
			e.UUID = id(n)
			store(t, s, e)
		}
		seen := map[string]bool{}
		f := events.Filter{}
		for range 4 {
			page, next, err := s.List(t.Context(), 1, f, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				seen[e.UUID] = true
			}
			f.Cursor = next
		}
		if len(seen) != 7 || f.Cursor != (events.Cursor{}) {
			t.Fatalf("saw %d of 7 events of one moment, next %v", len(seen), f.Cursor)
		}
	})
}

func TestEventsFollowMergedPerson(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		people := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
		pass := func(e *sdk.Event) {
			t.Helper()
			batch := []*sdk.Event{e}
			if _, err := people.Process(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			store(t, s, batch...)
		}
		pass(ev(1, "x", "anon", `{}`))
		pass(ev(2, "x", "alice", `{}`))
		pass(ev(3, "$identify", "alice", `{"$anon_distinct_id":"anon"}`))
		pass(ev(4, "x", "lone", `{"$process_person_profile":false}`))
		for n, want := range map[int]string{1: "alice", 2: "alice", 3: "alice", 4: "lone"} {
			got, err := s.Get(t.Context(), 1, id(n))
			if err != nil || got.PersonID != persons.PersonUUID(1, want) {
				t.Errorf("event %d belongs to %s, want %s (%v)", n, got.PersonID, want, err)
			}
		}
	})
}

func TestTail(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		if last, err := s.Last(t.Context()); err != nil || last != 0 {
			t.Fatalf("empty store ends at %d, %v", last, err)
		}
		store(t, s, ev(1, "x", "u", `{}`))
		last, err := s.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := ev(2, "x", "u", `{}`)
		other.ProjectID = 2
		store(t, s, other, ev(4, "x", "u", `{}`), ev(3, "x", "u", `{}`))
		got, err := s.Tail(t.Context(), 1, last, 10)
		if err != nil || len(got) != 2 || got[0].Event.UUID != id(4) || got[1].Event.UUID != id(3) {
			t.Fatalf("got %+v, %v", got, err)
		}
		if all, err := s.Tail(t.Context(), 0, last, 10); err != nil || len(all) != 3 {
			t.Fatalf("of all projects: %d, %v", len(all), err)
		}
		if rest, err := s.Tail(t.Context(), 1, got[1].Row, 10); err != nil || len(rest) != 0 {
			t.Fatalf("after the last: %v, %v", rest, err)
		}
	})
}

func TestCounts(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		call := func(n int, who, flag, response string) *sdk.Event {
			return ev(n, "$feature_flag_called", who, `{"$feature_flag":"`+flag+`","$feature_flag_response":`+response+`,"n":1}`)
		}
		people := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
		batch := []*sdk.Event{
			call(1, "u1", "new", `"test"`), call(2, "also-u1", "new", `"test"`), call(3, "u2", "new", `true`),
			call(61, "u1", "new", `"test"`), call(62, "u1", "old", `true`), call(-5, "u1", "new", `true`),
			ev(4, "other", "u1", `{"$feature_flag":"new","$feature_flag_response":true,"n":1.0}`),
			ev(5, "$create_alias", "u1", `{"alias":"also-u1"}`), call(180, "u1", "new", `true`),
			ev(6, "$feature_view", "lone", `{"feature_flag":"new","$process_person_profile":false}`),
		}
		if _, err := people.Process(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		store(t, s, batch...)
		hour := start.Add(time.Hour)
		for _, c := range []struct {
			name string
			q    events.CountQuery
			want []events.Count
		}{
			{"calls of a flag by answer", events.CountQuery{Event: "$feature_flag_called", Property: "$feature_flag", Value: "new", Breakdown: "$feature_flag_response"},
				[]events.Count{{start, "test", 2, 1}, {start, "true", 1, 1}, {hour, "test", 1, 1}}},
			{"calls of a flag", events.CountQuery{Event: "$feature_flag_called", Property: "$feature_flag", Value: "new"},
				[]events.Count{{start, "", 3, 2}, {hour, "", 1, 1}}},
			{"the same by a property without a column", events.CountQuery{Event: "$feature_flag_called", Property: "n", Value: "1", Breakdown: "$feature_flag"},
				[]events.Count{{start, "new", 3, 2}, {hour, "new", 1, 1}, {hour, "old", 1, 1}}},
			{"views of a flag", events.CountQuery{Event: "$feature_view", Property: "feature_flag", Value: "new"},
				[]events.Count{{start, "", 1, 1}}},
			{"all events of a name", events.CountQuery{Event: "other"}, []events.Count{{start, "", 1, 1}}},
			{"an unknown name", events.CountQuery{Event: "none"}, []events.Count{}},
		} {
			c.q.ProjectID, c.q.From, c.q.To, c.q.Interval = 1, start, start.Add(3*time.Hour), time.Hour
			if got, err := s.Counts(t.Context(), c.q); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: got %+v, %v", c.name, got, err)
			}
		}
		if _, err := s.Counts(t.Context(), events.CountQuery{}); !fault.Is(err, fault.Invalid) {
			t.Fatalf("an interval of nothing: %v", err)
		}
	})
}

func TestErase(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		store(t, s, ev(1, "x", "u1", `{}`), ev(2, "x", "u2", `{}`), ev(3, "x", "u3", `{}`))
		if n, err := s.Erase(t.Context(), 1, []string{"u1", "u3", "missing"}); err != nil || n != 2 {
			t.Fatalf("erased %d, %v", n, err)
		}
		if n, err := s.Count(t.Context(), 1, events.Filter{}); err != nil || n != 1 {
			t.Fatalf("%d left, %v", n, err)
		}
	})
}

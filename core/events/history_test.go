package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
)

func TestURLClausesAgreeWithSteps(t *testing.T) {
	addresses := []string{
		"https://a.example/docs", "https://A.example/DOCS", "100%", "100x", "a_b", "a-b", `a\b`, `a\_b`, "[x]", "x", "a*b", "aXb", "a?b",
		"!", "!_", "ü", "Ü", "💻", "a💻b", "'", `"`, "]", "[", "[^x]", "^", " ", "a\nb", strings.Repeat("x", 998) + "docs", strings.Repeat("ü", 499) + "docs", strings.Repeat("x", 2000),
	}
	patterns := []string{
		"docs", "DOCS", "%docs", "docs%", "a.example/%cs", "100%", `100\%`, "a_b", `a\_b`, `a\\b`, `a\b`, `\`, `a\`, "[x]", "[", "]", "[^x]", "^", "a*b", "*", "a?b", "?",
		"!", "!_", "!!", "ü", "Ü", "_💻_", "💻", "'", `"`, "_", "%", "%%", "__", " ", "\n", "xdocs", "ü%docs",
	}
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		for i, a := range addresses {
			properties, err := json.Marshal(map[string]string{"$current_url": a})
			if err != nil {
				t.Fatal(err)
			}
			store(t, s, ev(i, "$pageview", "u", string(properties)))
		}
		store(t, s, ev(500, "$pageview", "u", `{}`), ev(501, "other", "u", `{"$current_url":"docs"}`))
		for _, pattern := range append(patterns, addresses...) {
			for _, way := range []match.Matching{match.Contains, match.Exact} {
				p, err := match.CompilePattern(pattern, way, false)
				if err != nil {
					t.Fatal(err)
				}
				var want, open int64
				for _, a := range addresses {
					switch cut := len(a) > events.URLMax; {
					case p.Match(a) && (!cut || way == match.Contains && p.Match(a[:events.URLMax])):
						want++
					case len(a) >= events.URLMax-3:
						open++
					}
				}
				if way == match.Exact && len(pattern) >= events.URLMax-3 {
					continue // all addresses of that length are open then
				}
				a := &events.HistoryQuery{ProjectID: 1, Any: []events.HistoryClause{{Event: "$pageview", URL: pattern, URLMatching: urlWay(way)}}}
				got, err := s.CountHistory(t.Context(), a, 24*time.Hour)
				if n := sum(got.Events); err != nil || n != want || got.Ambiguous != open {
					t.Errorf("%s %q: %d and %d open, want %d and %d: %v", way, pattern, n, got.Ambiguous, want, open, err)
				}
			}
		}
	})
}

func urlWay(way match.Matching) events.URLMatching {
	if way == match.Contains {
		return events.URLContains
	}
	return events.URLEquals
}

func sum(counts map[int64]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func TestHistoryQueryBounds(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		for i := range 10 {
			store(t, s, ev(i, []string{"a", "b"}[i%2], fmt.Sprint("u", i%3), `{}`))
		}
		other := ev(100, "a", "u", `{}`)
		other.ProjectID = 2
		store(t, s, other)
		at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
		a, b, every := events.HistoryClause{Event: "a"}, events.HistoryClause{Event: "b"}, events.HistoryClause{AnyEvent: true}
		for _, c := range []struct {
			what string
			ask  events.HistoryQuery
			want int64
		}{
			{"no clause", events.HistoryQuery{}, 0},
			{"one name", events.HistoryQuery{Any: []events.HistoryClause{a}}, 5},
			{"a name twice", events.HistoryQuery{Any: []events.HistoryClause{a, a}}, 5},
			{"two names", events.HistoryQuery{Any: []events.HistoryClause{a, b}}, 10},
			{"every name, and one of them", events.HistoryQuery{Any: []events.HistoryClause{a, every}}, 10},
			{"every name at an address", events.HistoryQuery{Any: []events.HistoryClause{{AnyEvent: true, URL: "x", URLMatching: events.URLContains}}}, 0},
			{"from a moment on, up to but not at another", events.HistoryQuery{From: at(2), To: at(5), Any: []events.HistoryClause{every}}, 3},
			{"later than a row, not later than another", events.HistoryQuery{After: 2, Through: 6, Any: []events.HistoryClause{every}}, 4},
			{"of a name, by row", events.HistoryQuery{After: 2, Through: 6, Any: []events.HistoryClause{a}}, 2},
			{"open ones, where nothing can be", events.HistoryQuery{Ambiguous: true, Any: []events.HistoryClause{a}}, 0},
		} {
			c.ask.ProjectID = 1
			got, err := s.CountHistory(t.Context(), &c.ask, time.Minute)
			if n := sum(got.Events); err != nil || n != c.want || got.Row != 11 {
				t.Errorf("%s: %+v %v, want %d", c.what, got, err, c.want)
			}
			var seen int64
			err = s.ScanHistory(t.Context(), &c.ask, func(p *events.HistoryEvent) error { seen++; return nil })
			if err != nil || seen != c.want {
				t.Errorf("%s: saw %d %v, want %d", c.what, seen, err, c.want)
			}
		}
	})
}

func TestCheckpointReportsChanges(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		standing := func(project int64) events.Checkpoint {
			t.Helper()
			st, err := s.Checkpoint(t.Context(), project)
			if err != nil {
				t.Fatal(err)
			}
			return st
		}
		if st := standing(1); st != (events.Checkpoint{}) {
			t.Errorf("at first %+v", st)
		}
		elsewhere := ev(9, "a", "u", `{}`)
		elsewhere.ProjectID = 2
		store(t, s, ev(1, "a", "u1", `{}`), ev(2, "a", "u2", `{}`), elsewhere)
		if st := standing(1); st != (events.Checkpoint{Row: 3}) {
			t.Errorf("after events %+v", st)
		}
		erase := func(project int64, id string) {
			t.Helper()
			if _, err := s.Erase(t.Context(), project, []string{id}); err != nil {
				t.Fatal(err)
			}
		}
		erase(1, "missing")
		if st := standing(1); st.Erased != 0 {
			t.Errorf("after an erasure of nothing %+v", st)
		}
		erase(1, "u1")
		if st := standing(2); standing(1).Erased != 1 || st.Erased != 0 {
			t.Errorf("after an erasure %+v, elsewhere %+v", standing(1), st)
		}
		erase(2, "u")
		if st := standing(1); st.Erased != 1 {
			t.Errorf("after the last row went elsewhere %+v", st)
		}
		before := standing(1).Row
		store(t, s, ev(11, "a", "u3", `{}`))
		if st := standing(1); st.Row <= before {
			t.Errorf("the row of an erased last event is used again: %+v", st)
		}

		if err := s.PersonsMerged(t.Context(), 1, []int64{2, 3}, []int64{3, 4}); err != nil {
			t.Fatal(err)
		}
		if st := standing(2); standing(1).Persons != 2 || st.Persons != 0 {
			t.Errorf("after people moved %+v, elsewhere %+v", standing(1), st)
		}
	})
}

func TestCountHistoryUsesIndexOnly(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s, g := events.New(events.DefaultConfig(), d, zap.NewNop(), nil), newTraffic(start.AddDate(0, 0, -90), time.Minute)
		store(t, s, g.batch(5000)...)
		if d.Postgres() {
			if _, err := d.Write(t.Context()).ExecContext(context.Background(), "VACUUM ANALYZE events"); err != nil {
				t.Fatal(err)
			}
		}
		var plan string
		err := d.Tx(t.Context(), func(ctx context.Context) (err error) {
			if d.Postgres() {
				// So few events would be read from the table at once.
				if _, err := d.Write(ctx).ExecContext(ctx, "SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off"); err != nil {
					return err
				}
			}
			plan, err = s.Plan(ctx, &events.HistoryQuery{
				ProjectID: 1, From: start.AddDate(0, 0, -88), To: start.AddDate(0, 0, -87),
				Any: []events.HistoryClause{{Event: "$pageview", URL: "insights", URLMatching: events.URLContains}},
			})
			return err
		})
		want := "USING COVERING INDEX events_by_name (project_id=? AND event=? AND timestamp>? AND timestamp<?)"
		if d.Postgres() {
			want = "Index Only Scan using events_by_name"
		}
		if err != nil || !strings.Contains(plan, want) {
			t.Errorf("%v\n%s", err, plan)
		}
	})
}

func TestScanHistoryReadsPersons(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		one := ev(1, "a", "u1", `{"n":1.0}`)
		one.ElementsChain = "a:text=\"x\""
		store(t, s, one)
		p := people(t, d, "u1", "u2")
		var seen []events.HistoryEvent
		a := &events.HistoryQuery{ProjectID: 1, Any: []events.HistoryClause{{Event: "a"}}}
		keep := func(e *events.HistoryEvent) error {
			kept := *e
			kept.Event.Properties, kept.PersonProperties = bytes.Clone(e.Event.Properties), bytes.Clone(e.PersonProperties)
			seen = append(seen, kept)
			return nil
		}
		for _, a.WithPersons = range []bool{false, true} {
			if err := s.ScanHistory(t.Context(), a, keep); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) != 2 || seen[0].PersonRow != 0 || seen[1].PersonRow != p || string(seen[1].PersonProperties) != `{"k":"v"}` {
			t.Errorf("%+v", seen)
		}
		seen[1].Event.PersonID = ""
		if got, want := asJSON(t, seen[1].Event), asJSON(t, *one); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		ids, ambiguous, err := s.DistinctIDs(t.Context(), a)
		if _, found := ids[one.DistinctID]; err != nil || ambiguous || len(ids) != 1 || !found {
			t.Errorf("distinct ids %v %v %v", ids, ambiguous, err)
		}
		var found []string
		err = s.Persons(t.Context(), 1, []string{"nobody", one.DistinctID}, true, func(h *events.HistoryPerson) error {
			found = append(found, fmt.Sprint(h.DistinctID, h.Row == p, string(h.Properties)))
			return nil
		})
		if want := fmt.Sprint(one.DistinctID, true, `{"k":"v"}`); err != nil || len(found) != 1 || found[0] != want {
			t.Errorf("persons %v %v, want %s", found, err, want)
		}
	})
}

// people makes a person with the given distinct ids.
func people(t *testing.T, d *db.DB, distinctIDs ...string) (id int64) {
	t.Helper()
	err := d.Write(t.Context()).NewRaw(`INSERT INTO persons (project_id, uuid, created_at, updated_at, properties)
		VALUES (1, 'a0000000-0000-0000-0000-000000000001', 0, 0, '{"k":"v"}') RETURNING id`).Scan(t.Context(), &id)
	for _, distinctID := range distinctIDs {
		if err == nil {
			_, err = d.Write(t.Context()).NewRaw("INSERT INTO person_distinct_ids VALUES (1, ?, ?, 0)", distinctID, id).Exec(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

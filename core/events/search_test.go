package events_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/eventapi"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

// TestListByPropertiesEqualsTheFilters compares lists with filters evaluated on
// every event, page by page, with a scan that ends in the middle of pages.
func TestListByPropertiesEqualsTheFilters(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		s.SetScan(60, 20)
		addPerson(t, d, `{"plan":"pro","age":40}`, "u0", "u1")
		addPerson(t, d, `{"plan":"free"}`, "u2")
		people := map[string]string{"u0": `{"plan":"pro","age":40}`, "u1": `{"plan":"pro","age":40}`, "u2": `{"plan":"free"}`}
		r := rand.New(rand.NewPCG(7, 7))
		all := make([]*sdk.Event, 300)
		for i := range all {
			properties := []string{`{}`, `{"n":1.0}`, `{"n":7,"url":"https://x/a"}`, `{"url":"https://y/b","n":"12"}`, `{"n":null}`}[r.IntN(5)]
			all[i] = ev(i+1, []string{"a", "b"}[r.IntN(2)], fmt.Sprint("u", r.IntN(4)), properties)
			all[i].Timestamp = start.Add(time.Duration(r.IntN(50)) * time.Minute) // many share a time
		}
		store(t, s, all...)
		for _, raw := range []string{
			`[]`,
			`[{"key":"n","operator":"gt","value":5}]`,
			`[{"key":"n","operator":"is_set"}]`,
			`[{"key":"url","type":"event","operator":"icontains","value":"X/"},{"key":"n","value":[7],"operator":"exact"}]`,
			`[{"key":"plan","type":"person","operator":"exact","value":"pro"}]`,
			`[{"key":"plan","type":"person","operator":"is_not_set"},{"key":"n","operator":"is_not","value":7}]`,
			`[{"key":"n","operator":"exact","value":"none has it"}]`,
		} {
			items, err := propertyfilter.Compile(raw, match.Options{}, events.EventProperty, events.PersonProperty)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []events.Filter{{}, {Event: "a"}, {DistinctID: "u1"}, {Event: "b", After: start.Add(9 * time.Minute), Before: start.Add(40 * time.Minute)}} {
				f.Properties = items
				want := 0
				for _, e := range all {
					if selects(&f, e, people[e.DistinctID]) {
						want++
					}
				}
				for _, limit := range []int{1, 7, 1000} {
					got := walk(t, s, f, limit)
					for _, e := range got {
						if !selects(&f, e, people[e.DistinctID]) {
							t.Fatalf("%s %+v: %s does not pass", raw, f, e.UUID)
						}
					}
					if len(got) != want {
						t.Fatalf("%s %+v, pages of %d: %d events, want %d", raw, f, limit, len(got), want)
					}
				}
			}
		}
	})
}

// walk follows a list to its end. No event may occur twice.
func walk(t *testing.T, s *events.Service, f events.Filter, limit int) []*sdk.Event {
	t.Helper()
	var out []*sdk.Event
	seen := map[string]bool{}
	for {
		page, next, err := s.List(t.Context(), 1, f, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit {
			t.Fatalf("a page of %d has %d events", limit, len(page))
		}
		for i := range page {
			if seen[page[i].UUID] {
				t.Fatalf("%s occurs twice", page[i].UUID)
			}
			seen[page[i].UUID] = true
			if n := len(out); n > 0 && page[i].Timestamp.After(out[n-1].Timestamp) {
				t.Fatal("the list is not in the order of time")
			}
			out = append(out, &page[i])
		}
		if next == (events.Cursor{}) {
			return out
		}
		f.Cursor = next
	}
}

// selects evaluates f on one event with the properties of its person.
func selects(f *events.Filter, e *sdk.Event, person string) bool {
	if f.Event != "" && e.Name != f.Event || f.DistinctID != "" && e.DistinctID != f.DistinctID ||
		!f.After.IsZero() && !e.Timestamp.After(f.After) || !f.Before.IsZero() && !e.Timestamp.Before(f.Before) {
		return false
	}
	for _, item := range f.Properties {
		properties := string(e.Properties)
		if item.Kind == events.PersonProperty {
			properties = person
			if person == "" {
				properties = "{}"
			}
		}
		if !propertyfilter.NewAll([]*match.Filter{item.Filter}, match.Env{Now: time.Now()}).Match([]byte(properties)) {
			return false
		}
	}
	return true
}

func TestListByPerson(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		uuid, number := addPerson(t, d, `{}`, "u1", "u2")
		store(t, s, ev(1, "a", "u1", `{"n":1}`), ev(2, "b", "u2", `{"n":2}`), ev(3, "a", "u3", `{"n":1}`))
		base := webtest.Serve(t, webtest.DefaultKeys(), eventapi.NewHTTP(s, nil)) + "/api/projects/1/events/?"
		for query, want := range map[string]string{
			"person_id=" + uuid:                            `200 {"next":null,"results":[2 1]}`,
			"person_id=" + strings.ToUpper(uuid):           `200 {"next":null,"results":[2 1]}`,
			"person_id=" + fmt.Sprint(number):              `200 {"next":null,"results":[2 1]}`,
			"person_id=" + fmt.Sprint(number) + "&event=a": `200 {"next":null,"results":[1]}`,
			"person_id=" + id(99):                          `200 {"next":null,"results":[]}`,
			"person_id=ada":                                `400 {"type":"validation_error","code":"invalid_input","detail":"Not the uuid or the number of a person.","attr":"person_id"}`,
			"properties=" + url.QueryEscape(`[{"key":"n","operator":"exact","value":1}]`): `200 {"next":null,"results":[3 1]}`,
			"properties=n": `400 {"type":"validation_error","code":"invalid_input","detail":"Not a JSON list of property filters.","attr":"properties"}`,
			"properties=" + url.QueryEscape(`[{"key":"n","operator":"almost","value":1}]`): `400 {"type":"validation_error","code":"invalid_operator","detail":"Unknown operator: almost","attr":"properties"}`,
			"properties=" + url.QueryEscape(`[{"key":"id","type":"cohort","value":1}]`):    `400 {"type":"validation_error","code":"invalid_input","detail":"Only event and person properties can be asked for here, not cohort.","attr":"properties"}`,
		} {
			if got := shorten(get(t, base+query)); got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", query, got, want)
			}
		}
	})
}

// TestNextContinuesAScan follows next links of a list whose pages are empty until
// the scan reaches the only event that passes.
func TestNextContinuesAScan(t *testing.T) {
	s := service(t, dbtest.SQLite(t))
	s.SetScan(10, 5)
	batch := []*sdk.Event{ev(1, "a", "u", `{"n":1}`)}
	for i := 2; i < 60; i++ {
		batch = append(batch, ev(i, "a", "u", `{}`))
	}
	store(t, s, batch...)
	base := webtest.Serve(t, webtest.DefaultKeys(), eventapi.NewHTTP(s, nil))
	found, requests := 0, 0
	for next := base + "/api/projects/1/events/?properties=" + url.QueryEscape(`[{"key":"n","operator":"is_set"}]`); next != ""; requests++ {
		var page struct {
			Next    string
			Results []sdk.Event
		}
		if err := json.Unmarshal([]byte(get(t, next)[4:]), &page); err != nil {
			t.Fatal(err)
		}
		found += len(page.Results)
		next = page.Next
	}
	if found != 1 || requests < 5 || requests > 8 {
		t.Errorf("%d events in %d requests, want 1 in about 6", found, requests)
	}
}

// addPerson stores a person with distinct ids and returns its uuid and number.
func addPerson(t *testing.T, d *db.DB, properties string, distinctIDs ...string) (string, int64) {
	t.Helper()
	var number int64
	key := id(1000 + len(distinctIDs))
	err := d.Write(t.Context()).NewRaw(`INSERT INTO persons (project_id, uuid, created_at, updated_at, properties)
		VALUES (1, ?, 0, 0, ?) RETURNING id`, key, properties).Scan(t.Context(), &number)
	for _, distinctID := range distinctIDs {
		if err == nil {
			_, err = d.Write(t.Context()).NewRaw("INSERT INTO person_distinct_ids VALUES (1, ?, ?, 0)", distinctID, number).Exec(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, number
}

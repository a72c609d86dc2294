package definitions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/sdk"
)

var start = time.Date(2026, 3, 1, 12, 34, 56, 0, time.UTC)

// ev is an event of project 1, hours after start.
func ev(hours int, name, properties string) *sdk.Event {
	return &sdk.Event{
		UUID: uuid.NewString(), ProjectID: 1, Name: name, DistinctID: "u", ReceivedAt: start.Add(time.Duration(hours) * time.Hour),
		Properties: json.RawMessage(properties),
	}
}

// oneType is a project with one group type.
type oneType struct{ index int }

func (g oneType) GroupTypes(context.Context, int64) (map[string]int, error) {
	return map[string]int{"company": g.index}, nil
}

func automatic(name string) []string {
	if name == "$browser" {
		return []string{"$browser", "$initial_browser"}
	}
	return nil
}

func service(d *db.DB, cfg definitions.Config) *definitions.Service {
	return definitions.New(cfg, d, definitions.Dependencies{Groups: oneType{2}, CopiedNames: automatic}, nil)
}

// process sends a batch through the stage as the worker does.
func process(t testing.TB, d *db.DB, s *definitions.Service, batch ...*sdk.Event) (out []definitions.Warning) {
	t.Helper()
	err := d.Tx(t.Context(), func(ctx context.Context) (err error) {
		out, err = s.Process(ctx, batch)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// list shows definitions as "name type last-seen-hour", one after the other.
func list(t testing.TB, s *definitions.Service, f definitions.Filter) string {
	t.Helper()
	found, count, err := s.Find(t.Context(), 1, f, 1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	if count != len(found) {
		t.Errorf("count %d, found %d", count, len(found))
	}
	out := make([]string, len(found))
	for i, d := range found {
		out[i] = fmt.Sprintf("%s:%s:%d", d.Name, d.PropertyType, int(d.LastSeenAt.Sub(start.Truncate(time.Hour)).Hours()))
	}
	return strings.Join(out, " ")
}

func kind(k definitions.Kind) definitions.Filter { return definitions.Filter{Kind: k} }

// TestProcessWithoutTransaction fails by its timeout if Process holds its lock
// while the changes of memory that follow the commit wait for it.
func TestProcessWithoutTransaction(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(d, definitions.DefaultConfig())
		done := make(chan error, 1)
		go func() {
			batch := []*sdk.Event{ev(0, "$groupidentify", `{"$group_type":"company","$group_key":"acme","$group_set":{"seats":5}}`)}
			_, err := s.Process(t.Context(), batch)
			if err == nil {
				_, err = s.Process(t.Context(), []*sdk.Event{ev(1, "paid", `{"amount":9}`)})
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("Process does not return")
		}
		if got := list(t, s, kind(definitions.Event)); got != "$groupidentify::0 paid::1" {
			t.Errorf("event definitions %q", got)
		}
		if got := list(t, s, kind(definitions.GroupProperty)); got != "seats:Numeric:0" {
			t.Errorf("group properties %q", got)
		}
	})
}

func TestNamesAreRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		batches [][]*sdk.Event
		kind    definitions.Kind
		want    string
	}{
		"an event name, the hour it was seen": {[][]*sdk.Event{{ev(0, "paid", `{}`)}}, definitions.Event, "paid::0"},
		"seen again in a later hour":          {[][]*sdk.Event{{ev(0, "paid", `{}`)}, {ev(5, "paid", `{}`)}}, definitions.Event, "paid::5"},
		"an old event moves nothing back":     {[][]*sdk.Event{{ev(5, "paid", `{}`)}, {ev(0, "paid", `{}`)}}, definitions.Event, "paid::5"},
		"within one batch too":                {[][]*sdk.Event{{ev(5, "paid", `{}`), ev(0, "paid", `{}`), ev(7, "paid", `{}`)}}, definitions.Event, "paid::7"},
		"properties and their types": {
			[][]*sdk.Event{{ev(0, "e", `{"s":"x","n":1.5,"b":true,"d":"2026-01-02","nothing":null,"list":[1,{"in":2}],"o":{"deep":1}}`)}},
			definitions.EventProperty, "b:Boolean:0 d:DateTime:0 list::0 n:Numeric:0 nothing::0 o::0 s:String:0",
		},
		"a type is learnt when a value tells it": {[][]*sdk.Event{{ev(0, "e", `{"p":null}`)}, {ev(0, "e", `{"p":3}`)}}, definitions.EventProperty, "p:Numeric:0"},
		"and in the same batch":                  {[][]*sdk.Event{{ev(0, "e", `{"p":[]}`), ev(0, "e", `{"p":"x"}`)}}, definitions.EventProperty, "p:String:0"},
		"the first type stays":                   {[][]*sdk.Event{{ev(0, "e", `{"p":3}`)}, {ev(1, "e", `{"p":"x"}`)}}, definitions.EventProperty, "p:Numeric:1"},
		"person properties": {
			[][]*sdk.Event{{ev(0, "$identify", `{"$set":{"email":"a@b"},"$set_once":{"n":1},"$unset":["x"],"p":1}`)}},
			definitions.PersonProperty, "email:String:0 n:Numeric:0",
		},
		"that is no property of the event": {[][]*sdk.Event{{ev(0, "$set", `{"$set":{"a":1},"p":1}`)}}, definitions.EventProperty, "p:Numeric:0"},
		"copied properties":                {[][]*sdk.Event{{ev(0, "e", `{"$browser":"F"}`)}}, definitions.PersonProperty, "$browser:String:0 $initial_browser:String:0"},
		"but not of personless events":     {[][]*sdk.Event{{ev(0, "e", `{"$browser":"F","$process_person_profile":false}`)}}, definitions.PersonProperty, ""},
		"group properties": {
			[][]*sdk.Event{{ev(0, "$groupidentify", `{"$group_type":"company","$group_key":"k","$group_set":{"seats":3}}`)}},
			definitions.GroupProperty, "seats:Numeric:0",
		},
		"a group type without a place": {
			[][]*sdk.Event{{ev(0, "$groupidentify", `{"$group_type":"planet","$group_key":"k","$group_set":{"seats":3}}`)}}, definitions.GroupProperty, "",
		},
		"a name with escapes": {[][]*sdk.Event{{ev(0, "e", `{ "a\"\u00e9" : "x\\" , "b":"\"" }`)}}, definitions.EventProperty, `a"é:String:0 b:String:0`},
		"a name without text": {[][]*sdk.Event{{ev(0, "e", `{"":1,"p":1}`)}}, definitions.EventProperty, "p:Numeric:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dbtest.SQLite(t)
			s := service(d, definitions.DefaultConfig())
			for _, b := range c.batches {
				if w := process(t, d, s, b...); len(w) > 0 {
					t.Errorf("warnings %v", w)
				}
			}
			if got := list(t, s, kind(c.kind)); got != c.want {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
			// Another node, or the next start, knows the same.
			other := service(d, definitions.DefaultConfig())
			for _, b := range c.batches {
				process(t, d, other, b...)
			}
			if got := list(t, s, kind(c.kind)); got != c.want {
				t.Errorf("after a second node\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDialectsStoreTheSame(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := service(d, definitions.DefaultConfig())
		many := make([]string, 1200)
		for i := range many {
			many[i] = fmt.Sprintf(`"p%04d":%d`, i, i)
		}
		process(t, d, s, ev(0, "paid", `{"amount":1,"$lib":"x","$feature/a":"on"}`), ev(0, "$pageview", `{"$set":{"email":"a"}}`),
			ev(0, "wide", `{`+strings.Join(many, ",")+`}`))
		process(t, d, s, ev(3, "paid", `{"amount":2}`), ev(3, "$groupidentify", `{"$group_type":"company","$group_set":{"plan":"pro"}}`))
		yes, no, two, three := true, false, 2, 3
		for name, c := range map[string]struct {
			f    definitions.Filter
			want string
		}{
			"events by name":       {definitions.Filter{}, "$groupidentify::3 $pageview::0 paid::3 wide::0"},
			"latest first":         {definitions.Filter{Order: definitions.ByLastSeen, Descending: true}, "$groupidentify::3 paid::3 $pageview::0 wide::0"},
			"events of our own":    {definitions.Filter{System: &no}, "paid::3 wide::0"},
			"of the product":       {definitions.Filter{System: &yes}, "$groupidentify::3 $pageview::0"},
			"a word of a name":     {definitions.Filter{Search: "AI p"}, "paid::3"},
			"a sign, not a joker":  {definitions.Filter{Search: "p%d"}, ""},
			"some of them":         {definitions.Filter{Kind: definitions.EventProperty, Names: []string{"amount", "x"}}, "amount:Numeric:3"},
			"none of none":         {definitions.Filter{Kind: definitions.EventProperty, Names: []string{}}, ""},
			"numbers":              {definitions.Filter{Kind: definitions.EventProperty, Numeric: &yes, Search: "amount"}, "amount:Numeric:3"},
			"texts":                {definitions.Filter{Kind: definitions.EventProperty, Types: []string{"String"}}, "$feature/a:String:0 $lib:String:0"},
			"flags":                {definitions.Filter{Kind: definitions.EventProperty, Flags: &yes}, "$feature/a:String:0"},
			"but not these":        {definitions.Filter{Kind: definitions.EventProperty, Types: []string{"String"}, Without: []string{"$lib"}}, "$feature/a:String:0"},
			"of persons":           {definitions.Filter{Kind: definitions.PersonProperty}, "email:String:0"},
			"of a group type":      {definitions.Filter{Kind: definitions.GroupProperty, GroupIndex: &two}, "plan:String:3"},
			"of another":           {definitions.Filter{Kind: definitions.GroupProperty, GroupIndex: &three}, ""},
			"nothing is verified":  {definitions.Filter{Verified: &yes}, ""},
			"nothing is hidden":    {definitions.Filter{Hidden: &no, Search: "paid"}, "paid::3"},
			"properties by number": {definitions.Filter{Kind: definitions.EventProperty, Search: "p1199"}, "p1199:Numeric:0"},
		} {
			if got := list(t, s, c.f); got != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", name, got, c.want)
			}
		}
	})
}

func TestLimitOfNamesPerProject(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := service(d, definitions.Config{MaxEventDefinitions: 2, MaxPropertyDefinitions: 3, LastSeenEvery: time.Hour})
	got := process(t, d, s, ev(0, "a", `{"p1":1,"p2":2}`), ev(0, "b", `{}`), ev(0, "c", `{"p3":1,"p4":1,"p5":1}`), ev(0, "c", `{}`))
	if len(got) != 2 || got[0].Type != definitions.TooManyEvents || got[1].Type != definitions.TooManyProperties {
		t.Fatalf("warnings %+v", got)
	}
	if d := fmt.Sprint(got[0].Details); d != "map[example:c limit:2 names:2 type:event]" {
		t.Errorf("details %s", d)
	}
	if got[1].Details["example"] != "p4" || got[1].Details["names"] != 2 {
		t.Errorf("details %v", got[1].Details)
	}
	if got := list(t, s, kind(definitions.Event)); got != "a::0 b::0" {
		t.Errorf("events %s", got)
	}
	if got := list(t, s, kind(definitions.EventProperty)); got != "p1:Numeric:0 p2:Numeric:0 p3:Numeric:0" {
		t.Errorf("properties %s", got)
	}
	// Known names are still updated, by this node and the next.
	for _, s := range []*definitions.Service{s, service(d, definitions.Config{MaxEventDefinitions: 2, MaxPropertyDefinitions: 3, LastSeenEvery: time.Hour})} {
		if w := process(t, d, s, ev(4, "a", `{"p1":1}`)); len(w) > 0 {
			t.Errorf("warnings %v for known names", w)
		}
		if w := process(t, d, s, ev(4, "new", `{}`)); len(w) != 1 {
			t.Errorf("warnings %v for one more", w)
		}
	}
	if w := process(t, d, s, ev(4, "a", `{"`+strings.Repeat("x", 900)+`":1}`)); len(w) != 1 || w[0].Type != definitions.NameTooLong {
		t.Errorf("warnings %v for a name that is too long", w)
	}
}

func TestRollbackIsNotCached(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := service(d, definitions.DefaultConfig())
	process(t, d, s, ev(0, "first", `{}`))
	failed := fmt.Errorf("a later stage failed")
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		if _, err := s.Process(ctx, []*sdk.Event{ev(0, "paid", `{}`)}); err != nil {
			return err
		}
		return failed
	})
	if err != failed { //nolint:errorlint // it is that very error
		t.Fatal(err)
	}
	process(t, d, s, ev(0, "paid", `{}`))
	if got := list(t, s, kind(definitions.Event)); got != "first::0 paid::0" {
		t.Errorf("got %s", got)
	}
}

func TestGroupPropertiesGoWithTheirType(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := service(d, definitions.DefaultConfig())
	process(t, d, s, ev(0, "$groupidentify", `{"$group_type":"company","$group_set":{"plan":"pro"}}`))
	if err := s.ForgetGroups(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := list(t, s, kind(definitions.GroupProperty)); got != "plan:String:0" {
		t.Errorf("a type that stays lost its properties: %q", got)
	}
	gone := definitions.New(definitions.DefaultConfig(), d, definitions.Dependencies{Groups: oneType{0}}, nil)
	if err := gone.ForgetGroups(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := list(t, s, kind(definitions.GroupProperty)); got != "" {
		t.Errorf("left %q", got)
	}
}

func BenchmarkProcess(b *testing.B) {
	d := dbtest.SQLite(b)
	s := service(d, definitions.DefaultConfig())
	batch := make([]*sdk.Event, 1000)
	for i := range batch {
		batch[i] = ev(0, "$pageview", `{"$browser":"Firefox","$browser_version":139,"$os":"Linux","$device_type":"Desktop","$current_url":"https://shop.example/cart?a=1",`+
			`"$host":"shop.example","$pathname":"/cart","$screen_height":1080,"$screen_width":1920,"$viewport_height":900,"$viewport_width":1400,"$lib":"web",`+
			`"$lib_version":"1.249.3","$insert_id":"8a7s6d87as6d","$time":1767323045.123,"distinct_id":"u1","plan":"pro","amount":12.5,"items":[1,2,3],"ok":true}`)
	}
	process(b, d, s, batch...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Process(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch)), "ns/event")
}

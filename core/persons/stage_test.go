package persons_test

import (
	"context"
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
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/persons/stage"
	"github.com/guidonhq/guidon/sdk"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ev is an event of project 1, written as "name distinct_id {properties}".
func ev(line string) *sdk.Event {
	name, rest, _ := strings.Cut(line, " ")
	id, props, found := strings.Cut(rest, " ")
	if !found {
		props = "{}"
	}
	return &sdk.Event{
		UUID: uuid.NewSHA1(uuid.Nil, []byte(line)).String(), ProjectID: 1, DistinctID: id,
		Name:      strings.ReplaceAll(name, "_shown", " shown"),
		Timestamp: start, ReceivedAt: start, Properties: json.RawMessage(props),
	}
}

// evs is one event a line, each a second after the one before.
func evs(lines ...string) []*sdk.Event {
	var out []*sdk.Event
	for i, line := range lines {
		e := ev(line)
		e.Timestamp = start.Add(time.Duration(i) * time.Second)
		out = append(out, e)
	}
	return out
}

func service(t testing.TB, d *db.DB) *persons.Service {
	t.Helper()
	cfg := persons.DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return persons.New(cfg, d, zap.NewNop(), nil)
}

func process(t testing.TB, s *persons.Service, batch []*sdk.Event) []stage.Warning {
	t.Helper()
	w, err := s.Process(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func people(t testing.TB, s *persons.Service) string {
	t.Helper()
	return peopleOf(t, s, 1)
}

// peopleOf lists the persons of a project, one a line: distinct ids sorted, a star
// when identified, properties without the uuid of the first event.
func peopleOf(t testing.TB, s *persons.Service, project int64) string {
	t.Helper()
	var lines []string
	err := s.Walk(t.Context(), project, func(page []persons.Person) error {
		for _, p := range page {
			slices.Sort(p.DistinctIDs)
			star := ""
			if p.IsIdentified {
				star = "*"
			}
			lines = append(lines, fmt.Sprintf("%s%s %s", strings.Join(p.DistinctIDs, "+"), star, plain(t, p.Properties)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func plain(t testing.TB, properties []byte) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(properties, &m); err != nil {
		t.Fatalf("stored properties %s: %v", properties, err)
	}
	delete(m, "$creator_event_uuid")
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func kinds(ws []stage.Warning) string {
	var out []string
	for _, w := range ws {
		out = append(out, w.Type)
	}
	return strings.Join(out, " ")
}

type stageCase struct {
	name     string
	events   []string
	people   string
	warnings string
}

var stageCases = []stageCase{
	{
		name:   "an event makes its person",
		events: []string{`paid u1 {"amount":9}`},
		people: `u1 {}`,
	},
	{
		name:   "$set wins over $set_once in one event",
		events: []string{`x u1 {"$set":{"a":1},"$set_once":{"a":2,"b":3}}`},
		people: `u1 {"a":1,"b":3}`,
	},
	{
		name: "$set overwrites, $set_once fills, $unset removes",
		events: []string{
			`x u1 {"$set":{"plan":"free","first":"x","trial":true}}`,
			`x u1 {"$set":{"plan":"pro"},"$set_once":{"first":"y","seen":1},"$unset":["trial"]}`,
		},
		people: `u1 {"first":"x","plan":"pro","seen":1}`,
	},
	{
		name:   "$unset takes an object too, and what it names need not be there",
		events: []string{`$set u1 {"$set":{"a":1,"b":2}}`, `$set u1 {"$unset":{"a":null,"z":0}}`},
		people: `u1 {"b":2}`,
	},
	{
		name:   "values are replaced whole",
		events: []string{`$set u1 {"$set":{"o":{"a":1,"b":2}}}`, `$set u1 {"$set":{"o":{"c":3}}}`},
		people: `u1 {"o":{"c":3}}`,
	},
	{
		name:   "numbers keep their digits",
		events: []string{`$set u1 {"$set":{"a":1.10,"b":12345678901234567890,"c":1e5}}`},
		people: `u1 {"a":1.10,"b":12345678901234567890,"c":1e5}`,
	},
	{
		name:   "of a name that comes twice the last value counts",
		events: []string{`$set u1 {"$set":{"a":1,"a":2}}`},
		people: `u1 {"a":2}`,
	},
	{
		name:   "NUL becomes U+FFFD, and a backslash before u0000 does not",
		events: []string{`$set u1 {"$set":{"a\u0000b":"x\u0000y","c":"\\u0000"}}`},
		people: "u1 {\"a\uFFFDb\":\"x\\ufffdy\",\"c\":\"\\\\u0000\"}",
	},
	{
		name:   "client facts are copied, the first ones for good",
		events: []string{`$pageview u1 {"$browser":"Firefox","utm_source":"a"}`, `x u1 {"$browser":"Chrome","utm_source":"b"}`},
		people: `u1 {"$browser":"Chrome","$initial_browser":"Firefox","$initial_utm_source":"a","utm_source":"b"}`,
	},
	{
		name:   "a page view that changes quiet facts only writes nothing",
		events: []string{`$pageview u1 {"$current_url":"/a"}`, `$pageview u1 {"$current_url":"/b"}`},
		people: `u1 {"$current_url":"/a","$initial_current_url":"/a"}`,
	},
	{
		name:   "an event about the person writes quiet facts",
		events: []string{`$pageview u1 {"$current_url":"/a"}`, `$identify u1 {"$current_url":"/b"}`},
		people: `u1 {"$current_url":"/b","$initial_current_url":"/a"}`,
	},
	{
		name:   "what the event sets itself goes before what is copied",
		events: []string{`x u1 {"$browser":"Firefox","$set":{"$browser":"mine"},"$set_once":{"$initial_browser":"first"}}`},
		people: `u1 {"$browser":"mine","$initial_browser":"first"}`,
	},
	{
		name:   "a location is copied, the first one for good",
		events: []string{`$pageview u1 {"$geoip_country_code":"DE","$geoip_city_name":"Berlin"}`, `x u1 {"$geoip_country_code":"FR","$geoip_city_name":"Paris","$geoip_postal_code":"1"}`},
		people: `u1 {"$geoip_city_name":"Paris","$geoip_country_code":"FR","$geoip_postal_code":"1","$initial_geoip_city_name":"Berlin","$initial_geoip_country_code":"DE"}`,
	},
	{
		name:   "nothing is left of the old location",
		events: []string{`$pageview u1 {"$geoip_country_code":"DE","$geoip_city_name":"Berlin","$geoip_latitude":1}`, `x u1 {"$geoip_country_code":"FR","$set":{"$geoip_latitude":2}}`},
		people: `u1 {"$geoip_country_code":"FR","$geoip_latitude":2,"$initial_geoip_city_name":"Berlin","$initial_geoip_country_code":"DE","$initial_geoip_latitude":1}`,
	},
	{
		name:   "a move inside a city alone writes nothing",
		events: []string{`$pageview u1 {"$geoip_city_name":"Berlin","$geoip_postal_code":"1","$geoip_latitude":1}`, `x u1 {"$geoip_city_name":"Berlin","$geoip_latitude":2}`},
		people: `u1 {"$geoip_city_name":"Berlin","$geoip_latitude":1,"$geoip_postal_code":"1","$initial_geoip_city_name":"Berlin","$initial_geoip_latitude":1,"$initial_geoip_postal_code":"1"}`,
	},
	{
		name:   "a client that wants no location gives its person none",
		events: []string{`x u1 {"$geoip_city_name":"Berlin","$geoip_disable":true,"$set":{"a":1}}`},
		people: `u1 {"a":1}`,
	},
	{
		name:   "a server's operating system is not the person's",
		events: []string{`x u1 {"$lib":"posthog-node","$os":"Linux","$browser":"B"}`},
		people: `u1 {"$browser":"B","$initial_browser":"B"}`,
	},
	{
		name:   "$os_name stands for $os",
		events: []string{`x u1 {"$os_name":"iOS"}`, `$set u2 {"$os_name":"iOS","$os":"iPadOS"}`},
		people: "u1 {\"$initial_os\":\"iOS\",\"$os\":\"iOS\"}\nu2 {\"$initial_os\":\"iPadOS\",\"$os\":\"iPadOS\"}",
	},
	{
		name:   "$snapshot copies nothing",
		events: []string{`$snapshot u1 {"$browser":"Firefox"}`},
		people: `u1 {}`,
	},
	{
		name:     "$exception never updates, and says so",
		events:   []string{`$exception u1 {"$browser":"Firefox","$set":{"a":1}}`},
		people:   `u1 {}`,
		warnings: stage.WarnUpdateIgnored,
	},
	{
		name:   "without a profile there is no person",
		events: []string{`x u1 {"$process_person_profile":false,"$set":{"a":1}}`},
	},
	{
		name:   "without a profile an existing person stays as it is",
		events: []string{`$set u1 {"$set":{"a":1}}`, `x u1 {"$process_person_profile":false,"$set":{"a":2}}`},
		people: `u1 {"a":1}`,
	},
	{
		name:   "$identify without another id identifies no person",
		events: []string{`$identify u1 {"$set":{"a":1}}`},
		people: `u1 {"a":1}`,
	},
	{
		name:   "a survey shown is remembered",
		events: []string{`x u1`, `survey_shown u1 {"$set":{"a":1}}`},
		people: `u1 {"$survey_last_seen_date":"2026-03-01T12:00:01.000Z","a":1}`,
	},
	{
		name:   "$groupidentify does not set person properties",
		events: []string{`$groupidentify u1 {"$group_type":"company","$group_key":"acme","$set":{"a":1}}`},
		people: `u1 {}`,
	},

	// The table of merges: neither, one, the same, both.
	{
		name:   "merge: neither is known",
		events: []string{`$identify alice {"$anon_distinct_id":"anon","$set":{"a":1}}`},
		people: `alice+anon* {"a":1}`,
	},
	{
		name:   "merge: the other is known",
		events: []string{`x anon {"$set":{"a":1}}`, `$identify alice {"$anon_distinct_id":"anon","$set":{"b":2}}`},
		people: `alice+anon* {"a":1,"b":2}`,
	},
	{
		name:   "merge: the target is known",
		events: []string{`x alice {"$set":{"a":1}}`, `$create_alias alice {"alias":"crm"}`},
		people: `alice+crm* {"a":1}`,
	},
	{
		name:   "merge: both are the same already",
		events: []string{`$identify alice {"$anon_distinct_id":"anon"}`, `$create_alias anon {"alias":"alice"}`},
		people: `alice+anon* {}`,
	},
	{
		name: "merge: two persons become one, and the target's word wins",
		events: []string{
			`x anon {"$set":{"a":1,"b":1}}`, `x alice {"$set":{"b":2,"c":2}}`,
			`$identify alice {"$anon_distinct_id":"anon","$set_once":{"a":3,"d":3}}`,
		},
		people: `alice+anon* {"a":1,"b":2,"c":2,"d":3}`,
	},
	{
		name: "merge: an identified other is refused, and the target is identified all the same",
		events: []string{
			`$identify alice {"$anon_distinct_id":"a1"}`, `x bob`,
			`$identify bob {"$anon_distinct_id":"alice","$set":{"x":1}}`,
		},
		people:   "a1+alice* {}\nbob* {\"x\":1}",
		warnings: stage.WarnAlreadyIdentified,
	},
	{
		name: "merge: $create_alias is refused like $identify",
		events: []string{
			`$identify alice {"$anon_distinct_id":"a1"}`, `$identify bob {"$anon_distinct_id":"b1"}`,
			`$create_alias bob {"alias":"alice"}`,
		},
		people:   "a1+alice* {}\nb1+bob* {}",
		warnings: stage.WarnAlreadyIdentified,
	},
	{
		name: "merge: $merge_dangerously is not refused",
		events: []string{
			`$identify alice {"$anon_distinct_id":"a1","$set":{"n":"alice"}}`,
			`$identify bob {"$anon_distinct_id":"b1","$set":{"m":"bob"}}`,
			`$merge_dangerously bob {"alias":"alice"}`,
		},
		people: `a1+alice+b1+bob* {"m":"bob","n":"alice"}`,
	},
	{
		name: "merge: only the source must be anonymous",
		events: []string{
			`$identify alice {"$anon_distinct_id":"a1"}`, `x a2`, `$identify alice {"$anon_distinct_id":"a2"}`,
			`x a3`, `$identify alice {"$anon_distinct_id":"a3"}`,
		},
		people: `a1+a2+a3+alice* {}`,
	},
	{
		name:   "merge: with itself is nothing",
		events: []string{`$identify alice {"$anon_distinct_id":"alice"}`},
		people: `alice {}`,
	},
	{
		name:   "merge: an alias that is not true is none",
		events: []string{`$create_alias u1 {"alias":""}`, `$create_alias u2 {"alias":0}`, `$identify u3 {"$anon_distinct_id":null}`},
		people: "u1 {}\nu2 {}\nu3 {}",
	},
	{
		name:   "merge: the other id may be a number",
		events: []string{`$create_alias u1 {"alias":23}`},
		people: `23+u1* {}`,
	},
	{
		name:     "merge: an illegal other id is refused and nothing is marked",
		events:   []string{`$identify alice {"$anon_distinct_id":"Anonymous"}`},
		people:   `alice {}`,
		warnings: stage.WarnIllegalDistinctID,
	},
	{
		name:     "merge: an illegal target is refused",
		events:   []string{`$create_alias null {"alias":"alice"}`},
		people:   `null {}`,
		warnings: stage.WarnIllegalDistinctID,
	},
	{
		name:     "merge: quotes do not make it legal",
		events:   []string{`$identify a {"$anon_distinct_id":"'undefined'"}`, `$identify b {"$anon_distinct_id":"\"None\""}`, `$identify c {"$anon_distinct_id":" "}`},
		people:   "a {}\nb {}\nc {}",
		warnings: stage.WarnIllegalDistinctID + " " + stage.WarnIllegalDistinctID + " " + stage.WarnIllegalDistinctID,
	},
	{
		name: "merge: a chain within a batch ends with the last",
		events: []string{
			`x a {"$set":{"a":1}}`, `x b {"$set":{"b":1}}`, `x c {"$set":{"c":1}}`,
			`$merge_dangerously b {"alias":"a"}`, `$merge_dangerously c {"alias":"b"}`, `$set a {"$set":{"after":1}}`,
		},
		people: `a+b+c* {"a":1,"after":1,"b":1,"c":1}`,
	},
}

func TestStage(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		for i, c := range stageCases {
			project := int64(i + 1)
			check := func(when string) {
				t.Helper()
				if got := peopleOf(t, s, project); got != c.people {
					t.Errorf("%s: %s\ngot  %s\nwant %s", c.name, when, got, c.people)
				}
			}
			if got := kinds(process(t, s, in(project, evs(c.events...)))); got != c.warnings {
				t.Errorf("%s: warnings %q, want %q", c.name, got, c.warnings)
			}
			check("in one batch")
			process(t, s, in(project, evs(c.events...)))
			check("the same batch again")
		}
	})
}

// What comes out must not depend on where one batch ends and the next begins.
func TestStageOneEventAtATime(t *testing.T) {
	t.Parallel()
	s := service(t, dbtest.SQLite(t))
	for i, c := range stageCases {
		project := int64(i + 1)
		for _, e := range in(project, evs(c.events...)) {
			process(t, s, []*sdk.Event{e})
		}
		if got := peopleOf(t, s, project); got != c.people {
			t.Errorf("%s\ngot  %s\nwant %s", c.name, got, c.people)
		}
	}
}

// in gives the events to a project.
func in(project int64, batch []*sdk.Event) []*sdk.Event {
	for _, e := range batch {
		e.ProjectID = project
	}
	return batch
}

func TestPersonIDs(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		batch := evs(
			`x anon`, `x lone {"$process_person_profile":false}`, `x alice`,
			`$identify alice {"$anon_distinct_id":"anon"}`, `x anon {"$process_person_profile":false}`,
		)
		process(t, s, batch)
		want := persons.PersonUUID(1, "alice")
		for i, e := range batch {
			if i == 1 {
				continue
			}
			if e.PersonID != want {
				t.Errorf("event %d is of person %s, want %s: a merge of the same batch counts for all of it", i, e.PersonID, want)
			}
		}
		if batch[1].PersonID != persons.PersonUUID(1, "lone") {
			t.Errorf("without a profile the distinct id decides, got %s", batch[1].PersonID)
		}
		process(t, s, evs(`$identify bob {"$anon_distinct_id":"lone"}`))
		p, ok, err := s.ByDistinctID(t.Context(), 1, "bob")
		if err != nil || !ok || p.UUID != persons.PersonUUID(1, "lone") {
			t.Errorf("the id that was seen before gives the person its uuid; got %+v %v", p, err)
		}
	})
}

func TestPersonUUID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		project int64
		id      string
		want    string
	}{
		{1, "user-1", "6931a681-6e90-500d-8294-14582dcc2e3f"},
		{2, "anon-42", "eb47456c-47d5-5414-a66e-b83dced83c89"},
		{7, "a@example.com", "1d925ce2-24b4-54ff-b381-5bb4446054aa"},
	} {
		if got := persons.PersonUUID(c.project, c.id); got != c.want {
			t.Errorf("project %d, %s: %s, want %s", c.project, c.id, got, c.want)
		}
	}
}

func TestMergeKeepsTheOlderCreationTime(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		process(t, s, evs(`x anon`, `x alice`))
		process(t, s, evs(`$identify alice {"$anon_distinct_id":"anon"}`))
		p, ok, err := s.ByDistinctID(t.Context(), 1, "alice")
		if err != nil || !ok || !p.CreatedAt.Equal(start) {
			t.Fatalf("created at %v, want %v (%v)", p.CreatedAt, start, err)
		}
	})
}

func TestProjectsAreSeparate(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		batch := evs(`$set u1 {"$set":{"a":1}}`, `$set u1 {"$set":{"b":1}}`)
		batch[1].ProjectID = 2
		process(t, s, batch)
		if got := people(t, s); got != `u1 {"a":1}` {
			t.Fatal(got)
		}
	})
}

func TestMergeHooks(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		process(t, s, evs(`x a`, `x b`, `x c`))
		id := func(distinctID string) int64 {
			p, _, err := s.ByDistinctID(t.Context(), 1, distinctID)
			if err != nil {
				t.Fatal(err)
			}
			return p.ID
		}
		a, b, c := id("a"), id("b"), id("c")
		var got []string
		s.OnMerge(func(ctx context.Context, project int64, from, into []int64) error {
			for i := range from {
				var n int
				if err := d.Read(ctx).NewRaw("SELECT count(*) FROM persons WHERE id IN (?, ?)", from[i], into[i]).Scan(ctx, &n); err != nil {
					return err
				}
				got = append(got, fmt.Sprint(project, from[i], into[i], n))
			}
			return nil
		})
		// n is made and merged away in this batch: other packages do not know it.
		process(t, s, evs(`x n`, `$merge_dangerously n {"alias":"a"}`, `$merge_dangerously b {"alias":"n"}`,
			`$merge_dangerously c {"alias":"b"}`))
		want := []string{fmt.Sprint(1, a, b, 2), fmt.Sprint(1, b, c, 2)}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

package persons_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/db/sqlite"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web/webtest"
)

func names(page []persons.Person) string {
	var out []string
	for _, p := range page {
		out = append(out, p.Name())
	}
	return strings.Join(out, " ")
}

func TestFind(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		process(t, s, evs(
			`$set u1 {"$set":{"email":"Ann@Example.com","plan":"pro"}}`,
			`$set u2 {"$set":{"name":"Bob_Ö","plan":"free","n":5}}`,
			`$set u3 {"$set":{"username":"cy","plan":"pro","n":7}}`,
			`x Device%4`,
		))
		filter := func(raw string) *match.Filter {
			f, err := match.CompileFilter([]byte(raw), match.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		for _, c := range []struct {
			name  string
			q     persons.Query
			limit int
			skip  int
			want  string
			total int
		}{
			{"newest first", persons.Query{}, 10, 0, "Device%4 cy Bob_Ö Ann@Example.com", 4},
			{"a page", persons.Query{}, 2, 1, "cy Bob_Ö", 4},
			{"a page after the last", persons.Query{}, 2, 9, "", 4},
			{"by distinct id", persons.Query{DistinctID: "u2"}, 10, 0, "Bob_Ö", 1},
			{"by a part of an address in another case", persons.Query{Search: "ANN@"}, 10, 0, "Ann@Example.com", 1},
			{"by a part of a name beyond ASCII", persons.Query{Search: "b_ö"}, 10, 0, "Bob_Ö", 1},
			{"by a part of a distinct id", persons.Query{Search: "u"}, 10, 0, "cy Bob_Ö Ann@Example.com", 3},
			{"a percent sign is itself", persons.Query{Search: "e%4"}, 10, 0, "Device%4", 1},
			{"an underscore is itself", persons.Query{Search: "b_b"}, 10, 0, "", 0},
			{"no match", persons.Query{Search: "zzz"}, 10, 0, "", 0},
			{"by a property", persons.Query{Properties: []*match.Filter{filter(`{"key":"plan","value":"pro"}`)}}, 10, 0, "cy Ann@Example.com", 2},
			{"a page of them", persons.Query{Properties: []*match.Filter{filter(`{"key":"plan","value":"pro"}`)}}, 1, 1, "Ann@Example.com", 2},
			{"by two properties", persons.Query{Properties: []*match.Filter{
				filter(`{"key":"plan","value":"pro"}`), filter(`{"key":"n","value":6,"operator":"gt"}`)}}, 10, 0, "cy", 1},
			{"by a property no person has", persons.Query{Properties: []*match.Filter{filter(`{"key":"z","operator":"is_not_set"}`)}}, 10, 0,
				"Device%4 cy Bob_Ö Ann@Example.com", 4},
		} {
			got, total, err := s.Find(t.Context(), 1, c.q, c.limit, c.skip)
			if err != nil || names(got) != c.want || total != c.total {
				t.Errorf("%s: got %q of %d (%v), want %q of %d", c.name, names(got), total, err, c.want, c.total)
			}
		}
		if n, err := s.Count(t.Context(), 1); err != nil || n != 4 {
			t.Errorf("counted %d, %v", n, err)
		}
		refs, err := s.ResolveDistinctIDs(t.Context(), 1, []string{"u1", "u3", "nobody"})
		if err != nil || len(refs) != 2 || refs["u1"].UUID != persons.PersonUUID(1, "u1") {
			t.Errorf("resolved %v, %v", refs, err)
		}
	})
}

// The few persons of an index are filtered like those of a scan.
func TestFindFew(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		process(t, s, evs(
			`$set u1 {"$set":{"email":"Ann@Example.com","name":"Ann","plan":"pro"}}`,
			`$set u2 {"$set":{"email":"ann@example.com","plan":"free"}}`,
			`$set u3 {"$set":{"email":"ann@example.com.au","plan":"pro"}}`,
			`$set u4 {"$set":{"Email":"ann@example.com"}}`,
			`$set u5 {"$set":{"email":"JÜRGEN@example.com"}}`,
			`$identify u6 {"$anon_distinct_id":"anon","$set":{"name":"Six"}}`,
		))
		base := webtest.Serve(t, webtest.DefaultKeys(), persons.NewHTTP(s, nil, nil, nil)) + "/api/projects/1/persons/?"
		for query, want := range map[string]string{
			"email=ANN@example.COM":                  "u2 u1",
			"email=ann@example.com&limit=1":          "u2 of 2",
			"email=ann@example.com&limit=1&offset=1": "u1 of 2",
			"email=ann@example.com&offset=7":         " of 2",
			"email=ann@example.com&search=ANN%0A":    "",
			"email=ann@example.com&search=u1":        "u1",
			"email=ann@example":                      "",
			"email=j%C3%BCrgen@example.com":          "u5",
			"email=%C3%BC":                           "",
			"email=%25":                              "",
			"email=%F4%8F%BF%BF":                     "",
			"distinct_id=anon":                       "u6",
			"distinct_id=anon&search=SIX":            "u6",
			"distinct_id=anon&search=x6":             "",
			"distinct_id=anon&is_identified=false":   "",
			"distinct_id=anon&is_identified=true":    "u6",
			"distinct_id=anon&offset=1":              " of 1",
			"distinct_id=u1&email=ann@example.com":   "u1",
			"distinct_id=u3&email=ann@example.com":   "",
			"distinct_id=U1":                         "",
			"distinct_id=u1'%20OR%201=1":             "",
			`distinct_id=u1&properties=[{"key":"plan","value":"pro","type":"person"}]`:  "u1",
			`distinct_id=u1&properties=[{"key":"plan","value":"free","type":"person"}]`: "",
		} {
			var got struct {
				Count   int
				Results []struct {
					IDs []string `json:"distinct_ids"`
				}
			}
			_, body, _ := strings.Cut(ask(t, "GET", base+strings.ReplaceAll(query, `"`, "%22"), ""), " ")
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(body, err)
			}
			var ids []string
			for _, p := range got.Results {
				ids = append(ids, p.IDs[0])
			}
			text := strings.Join(ids, " ")
			if got.Count != len(ids) {
				text += fmt.Sprint(" of ", got.Count)
			}
			if text != want {
				t.Errorf("%s: %q, want %q", query, text, want)
			}
		}
	})
}

// An index finds the persons of an address, however many other addresses begin with it: their
// search texts begin with the address as a whole name.
func TestFindFewOfAnAddress(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		var lines []string
		for n := range 600 {
			lines = append(lines, fmt.Sprintf(`$set a%d {"$set":{"email":"ann@example.com.%d"}}`, n, n), fmt.Sprintf(`$set b%d {"$set":{"email":"BOB@example.com","name":"Bob"}}`, n))
		}
		lines = append(lines, `$set u1 {"$set":{"email":"Ann@Example.com","name":"Ann"}}`, `$set u2 {"$set":{"email":"ann@example.com"}}`,
			`$set u3 {"$set":{"email":"ann@example.com\tx"}}`, `$set u4 {"$set":{"email":"ann@example.com\nx"}}`)
		for len(lines) > 0 {
			n := min(100, len(lines))
			process(t, s, evs(lines[:n]...))
			lines = lines[n:]
		}
		for email, want := range map[string]string{"ann@example.com": "2 true", "ANN@example.com.7": "1 true", "bob@example.com": "0 false", "ann@example.co": "0 true", "a": "0 false"} {
			found, few, err := s.FindFew(t.Context(), 1, email)
			if got := fmt.Sprint(len(found), " ", few); err != nil || got != want {
				t.Errorf("%s: %s, %v; want %s", email, got, err, want)
			}
		}
	})
}

func TestDelete(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := patient(t, d)
		var calls []string
		s.OnDelete(func(_ context.Context, project, person int64) error {
			calls = append(calls, fmt.Sprint("delete ", project, person > 0))
			return nil
		})
		s.OnErase(func(_ context.Context, project int64, ids []string) (int64, error) {
			calls = append(calls, fmt.Sprint("erase ", project, ids))
			return 3, nil
		})
		process(t, s, evs(`$set u1 {"$set":{"a":1}}`, `$create_alias u1 {"alias":"u2"}`, `x u3`))
		properties(t, s, "u2")
		p, _, err := s.ByDistinctID(t.Context(), 1, "u1")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), 2, p.UUID, true); !fault.Is(err, fault.NotFound) {
			t.Fatalf("a person of another project: %v", err)
		}
		if err := s.Delete(t.Context(), 1, p.UUID, true); err != nil {
			t.Fatal(err)
		}
		if want := []string{"delete 1 true", "erase 1 [u1 u2]"}; !slices.Equal(calls, want) {
			t.Fatalf("hooks: %q", calls)
		}
		if got := people(t, s); got != `u3 {}` {
			t.Fatal(got)
		}
		if got := properties(t, s, "u2"); got != "none" {
			t.Fatalf("memory still has %s", got)
		}
		process(t, s, evs(`$set u2 {"$set":{"b":1}}`))
		if got := people(t, s); got != "u2 {\"b\":1}\nu3 {}" {
			t.Fatalf("a later event begins anew: %s", got)
		}
	})
}

func TestFailedDeleteHookRollsBack(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		sorry := errors.New("no")
		s.OnDelete(func(context.Context, int64, int64) error { return sorry })
		process(t, s, evs(`$set u1 {"$set":{"a":1}}`))
		if err := s.Delete(t.Context(), 1, persons.PersonUUID(1, "u1"), false); !errors.Is(err, sorry) {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), 1, persons.PersonUUID(1, "u1"), true); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("erase without hook: %v", err)
		}
		if got := people(t, s); got != `u1 {"a":1}` {
			t.Fatal(got)
		}
	})
}

func TestSplit(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := patient(t, d)
		for _, c := range []struct{ name, main, want string }{
			{"the main id keeps the properties", "b", "a {}\nb* {\"x\":1}\nc {}"},
			{"without a main id none keeps them", "", "a* {}\nb {}\nc {}"},
		} {
			process(t, s, evs(`$set a {"$set":{"x":1}}`, `$create_alias a {"alias":"b"}`, `$create_alias a {"alias":"c"}`))
			properties(t, s, "c")
			p, _, err := s.ByDistinctID(t.Context(), 1, "a")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Split(t.Context(), 1, fmt.Sprint(p.ID), "z"); !fault.Is(err, fault.Invalid) {
				t.Fatalf("%s: a main id of another person: %v", c.name, err)
			}
			if err := s.Split(t.Context(), 1, fmt.Sprint(p.ID), c.main); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if got := people(t, s); got != c.want {
				t.Fatalf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
			}
			if got := properties(t, s, "c"); got != `{}` {
				t.Fatalf("%s: memory still has %s", c.name, got)
			}
			// Together again for the next case.
			process(t, s, evs(`$merge_dangerously a {"alias":"b"}`, `$merge_dangerously a {"alias":"c"}`, `$set a {"$unset":["x"]}`))
		}
	})
}

func TestGroupTypes(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := patient(t, d)
		calls := 0
		s.Groups.OnTypesChanged(func(context.Context, int64) error { calls++; return nil })
		process(t, s, evs(
			`$groupidentify u {"$group_type":"company","$group_key":"acme","$group_set":{"name":"ACME Inc","a":1}}`,
			`$groupidentify u {"$group_type":"company","$group_key":"other"}`, `x u {"$groups":{"team":"1"}}`))
		if raw, _, err := s.GroupProperties(t.Context(), 1, "company", "acme"); err != nil || len(raw) == 0 {
			t.Fatal(string(raw), err)
		}
		for search, want := range map[string]int{"": 2, "CME i": 1, "OTH": 1, "zzz": 0} {
			page, total, err := s.Groups.Find(t.Context(), 1, 0, search, 10, 0)
			if err != nil || total != want || len(page) != want {
				t.Errorf("search %q: %d of %d, %v", search, len(page), total, err)
			}
		}
		text := func(s string) *string { return &s }
		if _, err := s.Groups.RenameType(t.Context(), 1, 0, text("team"), nil, nil); !fault.Is(err, fault.Invalid) {
			t.Fatalf("a name that is taken: %v", err)
		}
		g, err := s.Groups.RenameType(t.Context(), 1, 0, text("firm"), text("Firm"), nil)
		if err != nil || g.Name != "firm" || *g.Singular != "Firm" || g.Plural != nil {
			t.Fatalf("renamed to %+v, %v", g, err)
		}
		if raw, found, err := s.GroupProperties(t.Context(), 1, "firm", "acme"); err != nil || !found {
			t.Fatalf("groups keep their type: %s %v", raw, err)
		}
		if _, found, err := s.GroupProperties(t.Context(), 1, "company", "acme"); err != nil || found {
			t.Fatalf("the old name is gone: %v %v", found, err)
		}
		if err := s.Groups.DeleteType(t.Context(), 1, 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Groups.DeleteType(t.Context(), 1, 0); !fault.Is(err, fault.NotFound) {
			t.Fatalf("deleted twice: %v", err)
		}
		process(t, s, evs(`x u {"$groups":{"country":"de"}}`))
		types, err := s.GroupTypes(t.Context(), 1)
		if err != nil || len(types) != 2 || types["country"] != 0 || types["team"] != 1 {
			t.Fatalf("the slot is free again: %v %v", types, err)
		}
		if _, found, err := s.GroupProperties(t.Context(), 1, "country", "acme"); err != nil || found {
			t.Fatalf("and its groups are gone: %v %v", found, err)
		}
		if calls != 2 {
			t.Errorf("hook ran %d times, want 2", calls)
		}
	})
}

// A search that reads many rows and finds none lets requests have the processor.
func TestSearchesPause(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		if d.Postgres() {
			return // it has processors of its own
		}
		s := service(t, d)
		var lines []string
		for n := range 1100 {
			lines = append(lines, fmt.Sprintf(`$set u%d {"$set":{"email":"u%d@example.com"}}`, n, n))
		}
		process(t, s, evs(lines...))
		plan, err := match.CompileFilter([]byte(`{"key":"plan","type":"person","operator":"exact","value":["pro"]}`), match.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, q := range map[string]persons.Query{
			"search": {Search: "zzz"}, "filter": {Properties: []*match.Filter{plan}},
		} {
			before := sqlite.Pauses()
			if _, total, err := s.Find(t.Context(), 1, q, 10, 0); err != nil || total != 0 {
				t.Fatalf("%s: %d persons, %v", name, total, err)
			}
			if n := sqlite.Pauses() - before; n < 4 {
				t.Errorf("%s of 1,100 persons: %d pauses", name, n)
			}
		}
	})
}

package persons_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// searched is a page of a search.
type searched struct {
	Count    int
	Next     *string
	Complete bool
	Cursor   *string
	Searched int
	Total    *int
	Results  []struct {
		ID   int64
		Name string
	}
}

func search(t *testing.T, address string) (out searched) {
	t.Helper()
	status, body, _ := strings.Cut(ask(t, "GET", address, ""), " ")
	if err := json.Unmarshal([]byte(body), &out); err != nil || status != "200" {
		t.Fatal(status, body, err)
	}
	return out
}

// A search that is gone on with until its end finds the persons of the list without a limit,
// each once, and has then looked at all of them.
func TestSearchFindsAll(t *testing.T) {
	const all = 9_123 // several windows of both kinds
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		insertPersons(t, d, all)
		base := webtest.Serve(t, webtest.DefaultKeys(), persons.NewHTTP(s, nil, nil, nil)) + "/api/projects/1/persons/?"
		for _, query := range []string{
			"search=person-12", "search=SON-81", "search=%25", "search=nobody", "search=person-9122", "search=%F0%9F%98%80", "is_identified=false&search=person-70",
			`properties=[{"key":"plan","value":"plan-3","type":"person"}]&search=99`, `properties=[{"key":"name","value":"^Person 1+$","operator":"regex","type":"person"}]`,
			`properties=[{"key":"z","operator":"is_set","type":"person"}]`, "distinct_id=person-7", "distinct_id=nobody", "email=PERSON-7@example.com", "search=person-0&limit=1",
		} {
			query = strings.NewReplacer(`"`, "%22", "+", "%2B", " ", "%20", "^", "%5E").Replace(query)
			var want, got []int64
			for _, p := range search(t, base+query+"&limit=1000").Results {
				want = append(want, p.ID)
			}
			pages, looked := 0, 0
			for next := base + "limit=40&" + query + "&cursor="; ; pages++ {
				page := search(t, next)
				for _, p := range page.Results {
					got = append(got, p.ID)
				}
				if page.Count != len(page.Results) || page.Searched < looked || page.Complete != (page.Cursor == nil) || page.Complete != (page.Next == nil) || !page.Complete && *page.Total != all {
					t.Fatalf("%s: page %+v after %d persons", query, page, looked)
				}
				looked = page.Searched
				if page.Complete {
					break
				}
				next = *page.Next
			}
			if len(want) > 900 {
				t.Fatalf("%s: the list has a limit", query)
			}
			slices.Sort(want)
			slices.Sort(got)
			if limited := strings.Contains(query, "limit=1"); !limited && !slices.Equal(got, want) || limited && !slices.Contains(got, want[0]) {
				t.Errorf("%s: %d persons on %d pages, want %d", query, len(got), pages+1, len(want))
			}
			if indexed := strings.Contains(query, "distinct_id") || strings.Contains(query, "email="); !indexed && looked != all {
				t.Errorf("%s: looked at %d of %d", query, looked, all)
			}
		}
	})
}

// What begins with the text comes before the newest.
func TestSearchBeginsWithTheIndex(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		insertPersons(t, d, 30)
		process(t, s, evs(`$set newest {"$set":{"name":"a friend of person-7"}}`))
		base := webtest.Serve(t, webtest.DefaultKeys(), persons.NewHTTP(s, nil, nil, nil)) + "/api/projects/1/persons/?cursor=&search="
		for text, first := range map[string]string{"PERSON-7": "person-7@example.com", "person-7": "person-7@example.com", "friend": "a friend of person-7"} {
			if got := search(t, base+url.QueryEscape(text)).Results; len(got) == 0 || got[0].Name != first {
				t.Errorf("%s: %v, want %s first", text, got, first)
			}
		}
	})
}

// On Postgres a search names about how many persons a large project has, and exactly how many a
// small one has.
func TestEstimateProject(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		const large, small = 110_000, 7
		s := service(t, d)
		for project, n := range map[int64]int{1: large, 2: small} {
			if _, err := d.Write(t.Context()).ExecContext(t.Context(), `INSERT INTO persons (id, project_id, uuid, created_at, updated_at, properties)
				WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n+1 FROM s WHERE n+1 < ?) SELECT ? + n, ?, ? || '-' || n, n, 0, '{}' FROM s`,
				n, project*1_000_000, project, fmt.Sprint(project)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Write(t.Context()).ExecContext(t.Context(), "ANALYZE persons"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.EstimateProject(t.Context(), 1); err != nil || got < large*95/100 || got > large*105/100 {
			t.Errorf("%d persons of %d: %v", got, large, err)
		}
		if got, err := s.EstimateProject(t.Context(), 2); err != nil || got != small {
			t.Errorf("%d persons of %d: %v", got, small, err)
		}
	})
}

func TestSearchRefusesWhatIsNoCursor(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := service(t, d)
	insertPersons(t, d, 10)
	base := webtest.Serve(t, webtest.DefaultKeys(), persons.NewHTTP(s, nil, nil, nil)) + "/api/projects/1/persons/?search=person&cursor="
	for _, cursor := range []string{"x", "1", "1.2", "1.2.x", "1.-2.3", "1.2.-3", "1.2.3.0", "1.2.3.", "99999999999999999999.1.1", "1.2.3" + strings.Repeat(".4", 40), "'"} {
		if got := ask(t, "GET", base+url.QueryEscape(cursor), ""); !strings.HasPrefix(got, `400 {"type":"validation_error","code":"invalid_input","detail":"Invalid cursor.","attr":"cursor"}`) {
			t.Errorf("%q: %s", cursor, got)
		}
	}
	if got := ask(t, "GET", base+"&search="+strings.Repeat("a", 2000), ""); !strings.HasPrefix(got, "200") {
		t.Errorf("the first parameter counts: %s", got)
	}
	if got := ask(t, "GET", strings.Replace(base, "person&", strings.Repeat("a", 2000)+"&", 1), ""); !strings.HasPrefix(got, "400") {
		t.Errorf("a long text: %s", got)
	}
	for _, cursor := range []string{"-9223372036854775808.1.1", "9223372036854775807.9223372036854775807.9223372036854775807", "0.0.5", "1.1.1.9223372036854775807"} {
		if got := ask(t, "GET", base+cursor, ""); !strings.HasPrefix(got, "200") {
			t.Errorf("%s: %s", cursor, got)
		}
	}
	if got := ask(t, "GET", strings.Replace(base, "search=person", fmt.Sprintf("properties=%s", url.QueryEscape(`[{"key":"name","type":"person","operator":"regex","value":"(((a+)+)+)+$"}]`)), 1), ""); !strings.HasPrefix(got, `200 {"count":0`) {
		t.Error(got)
	}
}

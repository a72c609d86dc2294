package flags_test

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/continuity"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/flags/source"
	"github.com/guidonhq/guidon/core/persons"
)

func person(id int64, properties string, distinctIDs ...string) persons.Person {
	return persons.Person{ID: id, DistinctIDs: distinctIDs, Properties: []byte(properties)}
}

// threePersons returns two persons on the plan pro and one on free.
func threePersons() []persons.Person {
	return []persons.Person{person(1, `{"plan":"pro"}`, "a", "a2"), person(2, `{"plan":"Pro"}`, "b"), person(3, `{"plan":"free"}`, "c")}
}

const prosFilters = `{"properties":{"type":"OR","values":[{"type":"AND","values":[{"key":"plan","type":"person","operator":"exact","value":["pro"]}]}]}}`

func TestCohortLifecycle(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.stored.persons = threePersons()
		c := h.cohort(`{"name":" Pros ","description":null,"filters":` + prosFilters + `}`)
		if c.Name != "Pros" || c.Count == nil || *c.Count != 2 || c.IsStatic || c.Version != 1 || string(c.Filters) != prosFilters {
			t.Errorf("created: %+v %s", c, c.Filters)
		}
		nested := h.cohort(`{"name":"Not pros","filters":{"properties":{"type":"AND","values":[{"key":"id","type":"cohort","value":1,"negation":true}]}}}`)
		if nested.Count == nil || *nested.Count != 1 {
			t.Errorf("nested: %+v", nested)
		}
		h.do("PATCH", cohortsPath+"1/", `{"filters":{"properties":{"type":"AND","values":[]}}}`).want(200).into(&c)
		if *c.Count != 3 || c.Version != 2 {
			t.Errorf("cohort without conditions: %+v", c)
		}
		var p page[cohort]
		h.do("GET", cohortsPath+"?search=NOT&limit=1", "").want(200).into(&p)
		if p.Count != 1 || p.Results[0].Name != "Not pros" {
			t.Errorf("list: %+v", p)
		}
		f := h.create(`{"key":"f","filters":{"groups":[{"properties":[{"key":"id","type":"cohort","operator":"not_in","value":2}]}]}}`)
		var e struct{ Detail string }
		h.do("PATCH", cohortsPath+"2/", `{"deleted":true}`).fails(400, "invalid_input", "").into(&e)
		if !strings.Contains(e.Detail, "flag f") {
			t.Errorf("the detail does not name the flag: %s", e.Detail)
		}
		h.do("PATCH", cohortsPath+"1/", `{"deleted":true}`).fails(400, "invalid_input", "")
		h.patch(f.ID, `{"deleted":true}`).want(200)
		h.do("PATCH", cohortsPath+"2/", `{"deleted":true}`).want(200)
		h.do("PATCH", cohortsPath+"1/", `{"deleted":true}`).want(200)
		h.do("GET", cohortsPath, "").want(200).into(&p)
		if p.Count != 0 {
			t.Errorf("deleted cohorts are listed: %+v", p)
		}
		h.do("PATCH", cohortsPath+"1/", `{"deleted":false}`).want(200)
		if refused := h.do("DELETE", cohortsPath+"1/", "").want(405); len(refused.body) != 0 {
			t.Errorf("DELETE answers %q", refused.body)
		}
		h.do("GET", cohortsPath+"9/", "").fails(404, "not_found", "")
		h.do("GET", "/api/projects/2/cohorts/1/", "").fails(404, "not_found", "")
	})
}

func TestCohortRules(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.cohort(`{"name":"one","filters":` + prosFilters + `}`)
	h.cohort(`{"name":"two","filters":{"properties":{"type":"AND","values":[{"key":"id","type":"cohort","value":1}]}}}`)
	tree := func(leaf string) string {
		return `{"name":"x","filters":{"properties":{"type":"OR","values":[{"type":"AND","values":[` + leaf + `]}]}}}`
	}
	cases := []struct{ name, body, code, attr string }{
		{"no name", `{"filters":` + prosFilters + `}`, "required", "name"},
		{"no filters", `{"name":"x"}`, "required", "filters"},
		{"filters are no object", `{"name":"x","filters":[]}`, "not_a_dict", "filters"},
		{"no properties", `{"name":"x","filters":{"groups":[]}}`, "invalid_input", "filters"},
		{"no AND and no OR", `{"name":"x","filters":{"properties":{"type":"XOR","values":[]}}}`, "invalid_input", "filters"},
		{"values are no list", `{"name":"x","filters":{"properties":{"type":"AND","values":{}}}}`, "invalid_input", "filters"},
		{"a filter is no object", tree(`3`), "invalid_input", "filters"},
		{"behaviour", tree(`{"key":"$pageview","type":"behavioral","value":"performed_event"}`), "invalid_input", "filters"},
		{"group property", tree(`{"key":"a","type":"group","value":"x"}`), "invalid_input", "filters"},
		{"no key", tree(`{"type":"person","value":"x"}`), "invalid_input", "filters"},
		{"unknown operator", tree(`{"key":"a","type":"person","operator":"like","value":"x"}`), "invalid_operator", "filters"},
		{"broken regex", tree(`{"key":"a","type":"person","operator":"regex","value":"("}`), "invalid_input", "filters"},
		{"negation is a text", tree(`{"key":"a","type":"person","value":"x","negation":"no"}`), "invalid_input", "filters"},
		{"missing cohort", tree(`{"key":"id","type":"cohort","value":77}`), "cohort_does_not_exist", "filters"},
		{"people of a dynamic cohort", `{"name":"x","filters":` + prosFilters + `,"distinct_ids":["a"]}`, "invalid_input", "distinct_ids"},
		{"an empty distinct id", `{"name":"x","is_static":true,"distinct_ids":["a",""]}`, "blank", "distinct_ids__1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { h.in(t).do("POST", cohortsPath, c.body).fails(400, c.code, c.attr) })
	}
	circle := `{"filters":{"properties":{"type":"AND","values":[{"key":"id","type":"cohort","value":2}]}}}`
	h.do("PATCH", cohortsPath+"1/", circle).fails(400, "invalid_input", "filters")
	h.do("PATCH", cohortsPath+"1/", strings.Replace(circle, ":2}", ":1}", 1)).fails(400, "invalid_input", "filters")
	h.do("PATCH", cohortsPath+"1/", `{"is_static":true}`).fails(400, "invalid_input", "is_static")
	h.do("PUT", cohortsPath+"1/", `{"description":"x"}`).fails(400, "required", "name")
}

func TestStaticCohortMembers(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.stored.persons = threePersons()
		c := h.cohort(`{"name":"vip","is_static":true,"distinct_ids":["a2","a2","unknown"]}`)
		if c.Count == nil || *c.Count != 1 || !c.IsStatic {
			t.Errorf("created: %+v", c)
		}
		h.do("PATCH", cohortsPath+"1/", `{"distinct_ids":["b","c"],"remove_distinct_ids":["a2"]}`).want(200).into(&c)
		if *c.Count != 2 {
			t.Errorf("changed: %+v", c)
		}
		if got, err := h.cohorts.StaticCohorts(t.Context(), 1, "b"); err != nil || len(got) != 1 || got[0] != 1 {
			t.Errorf("lists of b: %v, %v", got, err)
		}
		h.sql(`INSERT INTO persons (id, project_id, uuid, created_at, updated_at) VALUES (7, 1, 'u', 0, 0)`)
		h.sql(`INSERT INTO person_distinct_ids (project_id, distinct_id, person_id, added_at) VALUES (1, 'b', 7, 0), (1, 'b-phone', 7, 0)`)
		if got, err := h.cohorts.StaticCohorts(t.Context(), 1, "b-phone"); err != nil || len(got) != 1 {
			t.Errorf("lists of b's other id: %v, %v", got, err)
		}
		if got, err := h.cohorts.StaticCohorts(t.Context(), 2, "b"); err != nil || len(got) != 0 {
			t.Errorf("lists in another project: %v, %v", got, err)
		}
		if n, err := h.cohorts.Erase(t.Context(), 1, []string{"unknown", "b"}); n != 2 || err != nil {
			t.Errorf("erased %d: %v", n, err)
		}
		if got := h.upload("1/", "name,distinct_id\nAda,a\nB,\"c\"\n\n"); got.Count == nil || *got.Count != 2 {
			t.Errorf("after the upload: %+v", got)
		}
	})
}

// An uploaded file has a million rows at most, and the memory of its rows and cells
// is taken from that of all requests before it is read.
func TestUploadsAreBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.cohort(`{"name":"list","is_static":true}`)
		h.tryUpload("1/", "a"+strings.Repeat("\n", 1_000_000)).fails(413, "request_too_large", "")
		h.holdMemory()
		wide := strings.Repeat(",", 6_000_000) // one row, of 24 bytes for each cell
		got := h.tryUpload("1/", wide)
		for deadline := time.Now().Add(time.Minute); got.status == 200 && time.Now().Before(deadline); {
			got = h.tryUpload("1/", wide) // the server had not received the other request
		}
		if got.fails(503, "server_saturated", ""); got.header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
		long := strings.Repeat("x", 401)
		h.upload("1/", "distinct_id\n"+long+"\n"+long[:400]+"\n")
		h.upload("1/", "a"+strings.Repeat("\n", 999_999))
		for id, listed := range map[string]int{long: 0, long[:400]: 1, "a": 1} {
			if got, err := h.cohorts.StaticCohorts(t.Context(), 1, id); err != nil || len(got) != listed {
				t.Errorf("lists of the id of %d characters: %v, %v", len(id), got, err)
			}
		}
	})
}

// holdMemory sends a request whose body does not end, because a request that is the
// only one may have all memory.
func (h *server) holdMemory() {
	h.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	if _, err := fmt.Fprintf(c, "PATCH %s1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n%s",
		cohortsPath, h.key, strings.Repeat(" ", 100_000)); err != nil {
		h.t.Fatal(err)
	}
}

// upload sends a CSV file to a cohort as a form.
func (h *server) upload(where, file string) cohort {
	h.t.Helper()
	var c cohort
	h.tryUpload(where, file).want(200).into(&c)
	return c
}

func (h *server) tryUpload(where, file string) answer {
	h.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("csv", "people.csv")
	if err == nil {
		_, err = part.Write([]byte(file))
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return h.do("PATCH", cohortsPath+where, body.String(), "Content-Type", form.FormDataContentType())
}

// sql runs a statement on the tables of other packages.
func (h *server) sql(statement string) {
	h.t.Helper()
	if _, err := h.db.Write(h.t.Context()).ExecContext(h.t.Context(), statement); err != nil {
		h.t.Fatal(err)
	}
}

func TestBlastRadius(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.stored.persons = threePersons()
		h.stored.groups = map[int][]persons.Group{0: {{Key: "acme", Properties: []byte(`{"size":10}`)}, {Key: "tiny", Properties: []byte(`{"size":1}`)}, {Key: "empty"}}}
		h.cohort(`{"name":"pros","filters":` + prosFilters + `}`)
		h.cohort(`{"name":"vip","is_static":true,"distinct_ids":["a2"]}`)
		h.create(`{"key":"dep","filters":{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":"free"}]}]}}`)
		h.create(`{"key":"kept","ensure_experience_continuity":true,"filters":{"groups":[{"properties":[],"rollout_percentage":50}]}}`)
		if _, err := h.db.Write(t.Context()).ExecContext(t.Context(), `INSERT INTO feature_flag_hash_keys (project_id, person_id, flag_key, hash_key) VALUES (1, 1, 'kept', 'x')`); err != nil {
			t.Fatal(err)
		}
		cases := []struct{ name, body, want string }{
			{"no properties match all", `{"condition":{"properties":[],"rollout_percentage":20}}`, `{"users_affected":3,"total_users":3}`},
			{"null is no properties", `{"condition":null}`, `{"users_affected":3,"total_users":3}`},
			{"a property", `{"condition":{"properties":[{"key":"plan","type":"person","operator":"exact","value":"PRO"}],"rollout_percentage":20}}`, `{"users_affected":2,"total_users":3}`},
			{"the distinct id", `{"condition":{"properties":[{"key":"distinct_id","type":"person","value":"b"}]}}`, `{"users_affected":1,"total_users":3}`},
			{"a cohort", `{"condition":{"properties":[{"key":"id","type":"cohort","operator":"in","value":1}]}}`, `{"users_affected":2,"total_users":3}`},
			{"a static cohort", `{"condition":{"properties":[{"key":"id","type":"cohort","operator":"not_in","value":2}]}}`, `{"users_affected":2,"total_users":3}`},
			{"a dependency", `{"condition":{"properties":[{"key":1,"type":"flag","operator":"flag_evaluates_to","value":true}]}}`, `{"users_affected":1,"total_users":3}`},
			{"groups", `{"condition":{"properties":[{"key":"size","type":"group","group_type_index":0,"operator":"gt","value":5}]},"group_type_index":0}`, `{"users_affected":1,"total_users":3}`},
		}
		for _, c := range cases {
			if got := string(h.do("POST", base+"user_blast_radius/", c.body).want(200).body); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		}
		h.do("POST", base+"user_blast_radius/", `{"condition":{"properties":[{"key":2,"type":"flag","operator":"flag_evaluates_to","value":true}]}}`).want(200)
		h.do("POST", base+"user_blast_radius/", `{}`).fails(400, "invalid_input", "")
		h.do("POST", base+"user_blast_radius/", `{"condition":{"properties":[{"key":"a","type":"group","group_type_index":1,"value":"x"}]},"group_type_index":0}`).fails(400, "invalid_input", "")
		h.do("POST", base+"user_blast_radius/", `{"condition":{"properties":[{"key":"a","type":"person","operator":"x","value":"x"}]}}`).fails(400, "invalid_operator", "")
	})
}

func TestBlastRadiusEstimate(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	for i := range 100 {
		h.stored.persons = append(h.stored.persons, person(int64(i+1), fmt.Sprintf(`{"odd":%d}`, i%2), fmt.Sprintf("p%d", i)))
	}
	h.stored.slow = 5 * time.Millisecond
	definitions := source.New(h.store, h.cohorts, revision.NewStore(h.db), projects{}, projects{})
	counter := audience.New(20*time.Millisecond, audience.Dependencies{Persons: &h.stored, Groups: storedGroups{&h.stored}, Source: definitions, StaticCohorts: h.cohorts, HashKeys: continuity.NewStore(h.db)})
	service, err := flags.NewService(flags.DefaultManageConfig(), h.store, flags.Dependencies{
		Revisions: h.revisions, Cohorts: h.cohorts, HashKeys: continuity.NewStore(h.db), Audience: counter, Users: h.accounts, Roles: h.accounts,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := service.BlastRadius(context.Background(), auth.Project{ID: 1}, []byte(`[{"key":"odd","type":"person","value":1}]`), nil)
	if err != nil || !a.Estimated || a.Total != 100 || a.Affected != 50 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestHashKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		ctx, store := t.Context(), continuity.NewStore(h.db)
		keys := []string{"one", "two"}
		get := func(id, anonymous string) string {
			t.Helper()
			got, err := store.HashKeys(ctx, 1, id, anonymous, keys)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(got)
		}
		if got := get("ada", "anon"); got != "map[]" {
			t.Errorf("hash keys without a person: %s", got)
		}
		h.sql(`INSERT INTO persons (id, project_id, uuid, created_at, updated_at) VALUES (1, 1, 'u1', 0, 0), (2, 1, 'u2', 0, 0)`)
		h.sql(`INSERT INTO person_distinct_ids (project_id, distinct_id, person_id, added_at) VALUES (1, 'ada', 1, 0), (1, 'bob', 2, 0), (1, 'anon', 2, 0)`)
		if got := get("ada", ""); got != "map[]" {
			t.Errorf("hash keys after a read: %s", got)
		}
		if got := get("ada", "anon"); got != "map[one:anon two:anon]" {
			t.Errorf("stored hash keys: %s", got)
		}
		if got := get("ada", "later"); got != "map[one:anon two:anon]" {
			t.Errorf("a second id replaced the first: %s", got)
		}
		if got := get("bob", ""); got != "map[one:anon two:anon]" {
			t.Errorf("hash keys of the anonymous person: %s", got)
		}
		h.sql(`UPDATE feature_flag_hash_keys SET hash_key = 'bobs' WHERE person_id = 2 AND flag_key = 'one'`)
		h.sql(`DELETE FROM feature_flag_hash_keys WHERE person_id = 1 AND flag_key = 'two'`)
		if got := get("ada", "bob"); got != "map[one:anon two:anon]" {
			t.Errorf("hash keys of both persons: %s", got)
		}
		h.sql(`INSERT INTO feature_flag_hash_keys (project_id, person_id, flag_key, hash_key) VALUES (1, 3, 'one', 'threes'), (1, 3, 'three', 'threes')`)
		// By way of person 2, which has a key of its own for the first flag.
		if err := store.MergePersons(ctx, 1, []int64{3, 4, 2}, []int64{2, 2, 1}); err != nil {
			t.Fatal(err)
		}
		if keys, err := store.HashKeysOf(ctx, 1, []int64{1, 2, 3}); err != nil || fmt.Sprint(keys) != "map[1:map[one:anon three:threes two:anon]]" {
			t.Errorf("hash keys after the merges: %v, %v", keys, err)
		}
		h.sql(`DELETE FROM feature_flag_hash_keys WHERE flag_key = 'three'`)
		if got := get("ada", ""); got != "map[one:anon two:anon]" {
			t.Errorf("after the merge: %s", got)
		}
		if got := get("bob", ""); got != "map[]" {
			t.Errorf("hash keys of the merged person: %s", got)
		}
		if err := store.DeletePerson(ctx, 1, 2); err != nil {
			t.Fatal(err)
		}
		h.create(`{"key":"one","ensure_experience_continuity":true}`)
		h.patch(1, `{"key":"uno"}`).want(200)
		if got, _ := store.HashKeys(ctx, 1, "ada", "", nil); got["uno"] != "anon" || got["one"] != "" {
			t.Errorf("after the rename: %v", got)
		}
	})
}

func TestCohortStatusCodes(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	if a := h.do("POST", cohortsPath, `{"name":"x","is_static":true}`); a.status != http.StatusCreated {
		t.Errorf("status %d", a.status)
	}
	h.as("phx_read").do("GET", cohortsPath, "").want(200)
	h.as("phx_read").do("POST", cohortsPath, `{"name":"x","is_static":true}`).fails(403, "permission_denied", "")
}

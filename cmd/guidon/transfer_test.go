package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// transferred is what one server has and the other must have, too.
type transferred struct {
	flags  map[string]string // values of all flags by distinct id
	events map[string]string // by uuid
}

// readFlags returns the values of all flags by distinct id. An answer leaves out flags
// whose data the server could not read in time, and says so: it is asked for again.
func readFlags(t *testing.T, s *server, persons int) map[string]string {
	t.Helper()
	out := map[string]string{}
	for i := range persons {
		id := fmt.Sprint("user-", i)
		body := fmt.Sprintf(`{"token":%q,"distinct_id":%q,"groups":{"company":"c%d","team":"t%d"}}`, s.project, id, i%5, i%3)
		until(t, func() string {
			var answer struct {
				Flags  map[string]any `json:"featureFlags"`
				Errors bool           `json:"errorsWhileComputingFlags"`
			}
			s.postJSON(t, "/decide/?v=3", body, &answer)
			text, err := json.Marshal(answer.Flags)
			if err != nil {
				t.Fatal(err)
			}
			if out[id] = string(text); answer.Errors {
				return "flags are missing: " + out[id]
			}
			return ""
		})
	}
	return out
}

func readTransferred(t *testing.T, s *server, persons int) transferred {
	t.Helper()
	out := transferred{readFlags(t, s, persons), map[string]string{}}
	var next *string
	path := "/api/projects/1/events/?limit=500"
	for {
		var page struct {
			Next    *string
			Results []struct {
				UUID, Event, Timestamp string
				DistinctID             string         `json:"distinct_id"`
				Chain                  string         `json:"elements_chain"`
				Properties             map[string]any `json:"properties"`
			}
		}
		s.get(t, path, &page)
		for _, e := range page.Results {
			if e.Properties["$ip"] == nil || e.Properties["$ip"] == "127.0.0.1" {
				delete(e.Properties, "$ip")
			}
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			out.events[e.UUID] = string(text)
		}
		if next = page.Next; next == nil {
			return out
		}
		u, err := url.Parse(*next)
		if err != nil {
			t.Fatal(err)
		}
		path = u.RequestURI()
	}
}

const transferPersons = 60

// fillProject makes definitions of every kind, with references between them, and events
// with groups, elements and merges.
func fillProject(t *testing.T, s *server) int {
	t.Helper()
	var batch []string
	for i := range transferPersons {
		props := fmt.Sprintf(`{"$groups":{"company":"c%d","team":"t%d"},"n":%d,"$set":{"plan":%q,"email":"u%d@example.com"}}`,
			i%5, i%3, i, []string{"pro", "free"}[i%2], i)
		batch = append(batch, fmt.Sprintf(`{"event":"opened","distinct_id":"user-%d","timestamp":"2026-10-%02dT10:00:00Z","properties":%s}`, i, i%28+1, props))
		if i%4 == 0 {
			batch = append(batch, fmt.Sprintf(`{"event":"$identify","distinct_id":"user-%d","properties":{"$anon_distinct_id":"anon-%d"}}`, i, i))
		}
	}
	for i := range 5 {
		batch = append(batch, fmt.Sprintf(`{"event":"$groupidentify","distinct_id":"user-0","properties":{"$group_type":"company","$group_key":"c%d","$group_set":{"size":%d}}}`, i, i*100))
	}
	batch = append(batch, `{"event":"$autocapture","distinct_id":"user-1","properties":{"$elements_chain":"a.link:text=\"Go\"nth-child=\"1\"nth-of-type=\"1\""}}`)
	status, err := s.post("/batch/", fmt.Sprintf(`{"api_key":%q,"batch":[%s]}`, s.project, strings.Join(batch, ",")))
	if err != nil || status != 200 {
		t.Fatal(status, err)
	}
	until(t, func() string {
		if got := readTransferred(t, s, 0); len(got.events) < len(batch) {
			return fmt.Sprintf("%d of %d events are stored", len(got.events), len(batch))
		}
		return ""
	})
	create := func(path, body string) int {
		t.Helper()
		var made struct{ ID int }
		s.postJSON(t, "/api/projects/1/"+path, body, &made)
		if made.ID == 0 {
			t.Fatalf("%s: no id for %s", path, body)
		}
		return made.ID
	}
	pro := create("cohorts/", `{"name":"Pro","filters":{"properties":{"type":"AND","values":[{"type":"AND","values":[{"key":"plan","type":"person","value":"pro","operator":"exact"}]}]}}}`)
	nested := create("cohorts/", fmt.Sprintf(`{"name":"Nested","filters":{"properties":{"type":"AND","values":[{"type":"AND","values":[{"key":"id","type":"cohort","value":%d}]}]}}}`, pro))
	static := create("cohorts/", `{"name":"Listed","is_static":true,"distinct_ids":["user-3","user-4","user-5"]}`)
	board := create("dashboards/", `{"name":"Board","tags":["a"]}`)
	base := create("feature_flags/", `{"key":"base","active":true,"filters":{"groups":[{"properties":[],"rollout_percentage":50}]}}`)
	create("feature_flags/", fmt.Sprintf(`{"key":"in-nested","active":true,"tags":["x"],"analytics_dashboards":[%d],"filters":{"groups":[{"properties":[{"key":"id","type":"cohort","operator":"in","value":%d}],"rollout_percentage":100}]}}`, board, nested))
	create("feature_flags/", fmt.Sprintf(`{"key":"in-listed","active":true,"filters":{"groups":[{"properties":[{"key":"id","type":"cohort","operator":"in","value":%d}],"rollout_percentage":100}]}}`, static))
	create("feature_flags/", fmt.Sprintf(`{"key":"a-dependent","active":true,"filters":{"groups":[{"properties":[{"key":"%d","type":"flag","operator":"flag_evaluates_to","value":true}],"rollout_percentage":100}]}}`, base))
	create("feature_flags/", `{"key":"variants","active":true,"filters":{"groups":[{"properties":[],"rollout_percentage":100}],"multivariate":{"variants":[{"key":"a","rollout_percentage":33.5},{"key":"b","rollout_percentage":66.5}]},"payloads":{"a":"{\"x\":1}"}}}`)
	index := s.groupIndex(t, "company")
	create("feature_flags/", fmt.Sprintf(`{"key":"by-company","active":true,"filters":{"aggregation_group_type_index":%d,"groups":[{"properties":[{"key":"size","type":"group","group_type_index":%d,"operator":"gt","value":150}],"rollout_percentage":100}]}}`, index, index))
	create("actions/", fmt.Sprintf(`{"name":"Opened","tags":["t"],"steps":[{"event":"opened","properties":[{"key":"id","type":"cohort","value":%d}]}]}`, pro))
	return len(batch)
}

func (s *server) groupIndex(t *testing.T, name string) int {
	t.Helper()
	var types []struct {
		Name  string `json:"group_type"`
		Index int    `json:"group_type_index"`
	}
	s.get(t, "/api/projects/1/groups_types/", &types)
	for _, one := range types {
		if one.Name == name {
			return one.Index
		}
	}
	t.Fatalf("no group type %s in %+v", name, types)
	return 0
}

// An export of a project with every kind of thing comes into an empty project on the
// other database: flags have the same values, and events are equal by uuid. A second
// import changes nothing.
func TestProjectMovesToTheOtherDatabase(t *testing.T) {
	t.Parallel()
	from := newServer(t)
	from.start(t)
	n := fillProject(t, from)
	dir := filepath.Join(t.TempDir(), "export")
	tool{from}.expect(t, 0, "export --to "+dir, "definitions: 3 cohorts, 1 dashboard, 6 flags, 1 action", fmt.Sprintf("events: %d in", n))
	want := readTransferred(t, from, transferPersons)
	for _, name := range []string{"definitions.yaml", "manifest.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), from.project) || strings.Contains(string(text), from.personal) {
			t.Errorf("%s has a key", name)
		}
	}
	tool{from}.expect(t, 0, "export --to "+dir, "events:") // everything is there

	to := newServer(t)
	to.useDatabase(dbtest.PostgresURL(t))
	to.start(t)
	// Other ids than at the source.
	var made struct{ ID int }
	to.postJSON(t, "/api/projects/1/cohorts/", `{"name":"Other","filters":{"properties":{"type":"AND","values":[{"type":"AND","values":[{"key":"x","type":"person","value":"y"}]}]}}}`, &made)
	tool{to}.expect(t, 0, "import "+dir+" --dry-run", "create flag by-company", "create 11")
	tool{to}.expect(t, 0, "import "+dir, fmt.Sprintf("events: %d accepted", n), "create cohort Nested", "definitions: 11 created, 0 changed")
	until(t, func() string {
		got := readTransferred(t, to, transferPersons)
		for id, text := range want.events {
			if got.events[id] != text {
				return fmt.Sprintf("event\n%s\nwant\n%s", got.events[id], text)
			}
		}
		for id, text := range want.flags {
			if got.flags[id] != text {
				return fmt.Sprintf("flags of %s\n%s\nwant\n%s", id, got.flags[id], text)
			}
		}
		return ""
	})
	tool{to}.expect(t, 0, "import "+dir, "definitions: 0 created, 0 changed, 11 left")
	// A difference is refused, skipped or updated.
	to.patchJSON(t, "/api/projects/1/actions/1/", `{"description":"changed"}`)
	tool{to}.expect(t, 1, "import "+dir+" --only definitions", "action Opened (line", "exists and differs in [description]")
	tool{to}.expect(t, 0, "import "+dir+" --only definitions --on-conflict skip", "leave  action Opened", "11 left")
	tool{to}.expect(t, 0, "import "+dir+" --only definitions --on-conflict update", "change action Opened: [description]", "1 changed")
}

// The definitions of an export are a seed file, and a seed file can be imported: both give
// a server with the same definitions, whose export is the same file.
func TestExportIsSeedFile(t *testing.T) {
	t.Parallel()
	from := newServer(t)
	from.start(t)
	fillProject(t, from)
	var role struct{ ID string }
	from.postJSON(t, "/api/organizations/@current/roles/", `{"name":"Release managers","feature_flags_access_level":37}`, &role)
	from.postJSON(t, "/api/projects/1/feature_flags/1/role_access/", fmt.Sprintf(`{"role_id":%q}`, role.ID), nil)
	from.postJSON(t, "/api/projects/1/scheduled_changes/",
		`{"record_id":"1","model_name":"FeatureFlag","scheduled_at":"2999-01-01T00:00:00Z","payload":{"operation":"update_status","value":false}}`, nil)
	from.sendJSON(t, http.MethodPatch, "/api/projects/1/retention/", `{"keep":"90d","events":{"opened":"30d"}}`, nil)
	from.sendJSON(t, http.MethodPatch, "/api/projects/1/", `{"timezone":"Europe/Berlin"}`, nil)

	export := func(s *server) (path, text string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "export")
		tool{s}.expect(t, 0, "export --only definitions --to "+dir, "definitions: 3 cohorts, 1 dashboard, 6 flags, 1 action")
		path = filepath.Join(dir, "definitions.yaml")
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return path, string(body)
	}
	path, want := export(from)
	for _, part := range []string{"Release managers", "2999-01-01", "group_type: company", "opened: 30d", "Europe/Berlin", "format: guidon-definitions/2"} {
		if !strings.Contains(want, part) {
			t.Errorf("the export lacks %s:\n%s", part, want)
		}
	}
	ready, _, _, _ := startEphemeral(t, "--ephemeral", "--seed", path)
	seeded := newServer(t)
	seeded.url, seeded.address, seeded.personal, seeded.project = ready.URL, strings.TrimPrefix(ready.URL, "http://"), ready.PersonalKey, ready.Projects[0].Key
	if _, got := export(seeded); withoutMembers(got) != withoutMembers(want) {
		t.Errorf("the seeded server has other definitions:\n%s\nwant\n%s", got, want)
	}

	to := newServer(t)
	to.start(t)
	tool{to}.expect(t, 0, "import "+path+" --on-conflict update", "create role Release managers", "create scheduled change of flag base", "create group type company", "13 created")
	_, got := export(to)
	if withoutMembers(got) != withoutMembers(want) {
		t.Errorf("the import has made other definitions:\n%s\nwant\n%s", got, want)
	}
	tool{to}.expect(t, 0, "import "+path+" --on-conflict skip", "0 created, 0 changed")

	// A seed file of the guide.
	shop := newServer(t)
	shop.start(t)
	example, err := filepath.Abs("../../examples/ci/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tool{shop}.expect(t, 0, "import "+example, "create cohort Invited", "create flag invited", "8 created")
	tool{shop}.expect(t, 0, "flag list", "new-checkout", "everyone")
}

// withoutMembers removes the lines of the members of static cohorts: an export has those
// that are persons, and these servers have no events.
func withoutMembers(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "- user-") && !strings.Contains(line, "- anon-") {
			out.WriteString(strings.Replace(line, "distinct_ids: []", "distinct_ids:", 1))
		}
	}
	return out.String()
}

// useDatabase makes the server use the database at the URL.
func (s *server) useDatabase(address string) {
	text := fmt.Sprintf("\ndatabase:\n  url: %q\n", address)
	f, err := os.OpenFile(s.config(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		panic(err)
	}
}

// sendJSON sends a management request and decodes the answer.
func (s *server) sendJSON(t *testing.T, method, path, body string, out any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.personal)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, answer, err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *server) postJSON(t *testing.T, path, body string, out any) {
	t.Helper()
	s.sendJSON(t, http.MethodPost, path, body, out)
}

func (s *server) patchJSON(t *testing.T, path, body string) {
	t.Helper()
	s.sendJSON(t, http.MethodPatch, path, body, nil)
}

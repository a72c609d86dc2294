package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
)

// auditPage is an answer of the activity log.
type auditPage struct {
	TotalCount int     `json:"total_count"`
	Next       *string `json:"next"`
	Results    []struct {
		User struct {
			FirstName string `json:"first_name"`
			Email     string `json:"email"`
		} `json:"user"`
		UserID   *int64 `json:"user_id"`
		KeyID    *int64 `json:"personal_api_key_id"`
		Client   string `json:"client_address"`
		Activity string `json:"activity"`
		Scope    string `json:"scope"`
		ItemID   string `json:"item_id"`
		Detail   struct {
			Name    string `json:"name"`
			Changes []struct {
				Field         string `json:"field"`
				Before, After any
			} `json:"changes"`
			Trigger *struct {
				JobID string `json:"job_id"`
			} `json:"trigger"`
		} `json:"detail"`
	} `json:"results"`
}

func (s *server) audit(t *testing.T, path string) (p auditPage, raw string) {
	t.Helper()
	status, raw, _ := s.request(t, http.MethodGet, s.URL+path, "")
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, status, raw)
	}
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		t.Fatal(err)
	}
	return p, raw
}

// Each change of an account leaves an entry with the user, the key, the address and
// the object; a change that fails leaves none, and no entry holds a secret.
func TestChangesOfAccountsAreLogged(t *testing.T) {
	t.Parallel()
	s := serve(t)
	must := func(method, path, body string, want int) string {
		t.Helper()
		status, answer, _ := s.request(t, method, s.URL+path, body)
		if status != want {
			t.Fatalf("%s %s: %d %s, want %d", method, path, status, answer, want)
		}
		return answer
	}
	idOf := func(answer string) string {
		var v struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			t.Fatal(err)
		}
		return strings.Trim(string(v.ID), `"`)
	}
	created := must("POST", "/api/personal_api_keys/", `{"label":"deploy","scopes":["feature_flag:read"]}`, 201)
	var secret struct{ Value string }
	if err := json.Unmarshal([]byte(created), &secret); err != nil || secret.Value == "" {
		t.Fatal(err, created)
	}
	key := idOf(created)
	must("PATCH", "/api/personal_api_keys/"+key+"/", `{"label":"deploy 2"}`, 200)
	must("PATCH", "/api/personal_api_keys/"+key+"/", `{"scopes":["nonsense"]}`, 400)
	must("DELETE", "/api/personal_api_keys/"+key+"/", "", 204)
	must("POST", "/api/projects/1/keys/", `{"label":"ios"}`, 201)
	role := idOf(must("POST", "/api/organizations/@current/roles/", `{"name":"viewers"}`, 201))
	must("PATCH", "/api/organizations/@current/roles/"+role+"/", `{"feature_flags_access_level":21}`, 200)
	must("DELETE", "/api/organizations/@current/roles/"+role+"/", "", 204)
	must("PATCH", "/api/organizations/@current/", `{"name":"Renamed"}`, 200)
	must("PATCH", "/api/users/@me/", `{"first_name":"Ada"}`, 200)
	must("PATCH", "/api/projects/1/", `{"timezone":"Europe/Berlin"}`, 200)

	all, raw := s.audit(t, "/api/organizations/@current/activity_log/?limit=100")
	var got []string
	for _, e := range all.Results {
		got = append(got, e.Scope+" "+e.Activity)
		if e.UserID == nil || e.KeyID == nil || e.Client != "127.0.0.1" || e.ItemID == "" {
			t.Errorf("entry %+v has no user, key, address or object", e)
		}
	}
	slices.Reverse(got)
	want := []string{
		"PersonalAPIKey created", "PersonalAPIKey updated", "PersonalAPIKey deleted", "ProjectAPIKey created",
		"Role created", "Role updated", "Role deleted", "Organization updated", "User updated", "Project updated",
	}
	if !slices.Equal(got, want) || all.TotalCount != len(want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
	if strings.Contains(raw, secret.Value) || strings.Contains(raw, s.PersonalKey) || strings.Contains(raw, s.ProjectKey) {
		t.Error("the log holds a key")
	}
	updated := all.Results[len(all.Results)-2]
	if c := updated.Detail.Changes; len(c) != 1 || c[0].Field != "label" || c[0].Before != "deploy" || c[0].After != "deploy 2" {
		t.Errorf("changes %+v, want the label", c)
	}
	for path, n := range map[string]int{
		"/api/projects/1/activity_log/": 2, "/api/projects/1/activity_log/?scope=Project": 1,
		"/api/organizations/@current/activity_log/?scope=Role&item_id=" + role: 3, "/api/organizations/@current/activity_log/?user=99": 0,
	} {
		if p, _ := s.audit(t, path); p.TotalCount != n {
			t.Errorf("%s has %d entries, want %d", path, p.TotalCount, n)
		}
	}
	if p, _ := s.audit(t, "/api/organizations/@current/activity_log/?limit=3&page=2"); len(p.Results) != 3 || p.Next == nil {
		t.Errorf("the second page has %d entries, next %v", len(p.Results), p.Next)
	}
	if status, _, _ := s.request(t, "GET", s.URL+"/api/organizations/@current/activity_log/?user=x", ""); status != 400 {
		t.Errorf("user=x is answered with %d", status)
	}
}

// The erasure of a person, the administration of plugins and commands are logged, too.
func TestErasuresOperationsAndCommandsAreLogged(t *testing.T) {
	t.Parallel()
	var cfg app.Config
	s := serve(t, func(c *app.Config) { cfg = *c })
	s.capture(t, `{"event":"e","distinct_id":"secret-person@example.com","properties":{"$set":{"a":1}}}`)
	var person struct{ Results []struct{ ID int64 } }
	s.until(t, "the person is stored", func() bool {
		_, answer, _ := s.request(t, "GET", s.URL+"/api/projects/1/persons/?distinct_id=secret-person@example.com", "")
		return json.Unmarshal([]byte(answer), &person) == nil && len(person.Results) == 1
	})
	if status, answer, _ := s.request(t, "DELETE", fmt.Sprintf("%s/api/projects/1/persons/%d/?delete_events=true", s.URL, person.Results[0].ID), ""); status != 204 {
		t.Fatal(status, answer)
	}
	if status, answer, _ := s.request(t, "POST", s.AdminURL+"/api/plugins/lines/pause", ""); status != 200 {
		t.Fatal(status, answer)
	}
	if status, _, _ := s.request(t, "POST", s.AdminURL+"/api/plugins/none/restart", ""); status != 404 {
		t.Fatal(status)
	}
	a, err := app.OpenAdmin(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	secret, err := a.NewPersonalKey(t.Context(), 1, "from the shell", []string{"*"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.NewUser(t.Context(), "", "grace@example.com", "Grace", "member", false); err == nil {
		t.Error("a user without an organization was created")
	}
	organization, err := a.DefaultOrganization(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	user, err := a.NewUser(t.Context(), organization, "grace@example.com", "Grace", "member", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SetOperator(t.Context(), user, true); err != nil {
		t.Fatal(err)
	}

	all, raw := s.audit(t, "/api/organizations/@current/activity_log/?limit=100")
	var got []string
	for _, e := range all.Results {
		line := e.Scope + " " + e.Activity + " by " + e.User.FirstName
		if e.Client == "" {
			line += " without an address"
		}
		got = append(got, line)
	}
	slices.Reverse(got)
	me := all.Results[len(all.Results)-1].User.FirstName
	want := []string{
		"Person deleted by " + me, "Plugin paused by " + me, "PersonalAPIKey created by command line without an address",
		"User created by command line without an address", "User updated by command line without an address",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
	if strings.Contains(raw, "secret-person") || strings.Contains(raw, secret) {
		t.Error("the log holds a distinct id or a key")
	}
}

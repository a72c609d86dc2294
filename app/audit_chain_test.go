package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/activity/chain"
)

// write is a management request that must succeed.
func (s *server) write(t *testing.T, method, url, body string) string {
	t.Helper()
	status, answer, _ := s.request(t, method, url, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, url, status, answer)
	}
	return answer
}

// scopesOf returns what the log of the organization has, the oldest first.
func (s *server) scopesOf(t *testing.T, query string) []string {
	t.Helper()
	all, _ := s.audit(t, "/api/organizations/@current/activity_log/?limit=100&"+query)
	var out []string
	for _, e := range all.Results {
		out = append(out, e.Scope+" "+e.Activity+" "+e.ItemID)
	}
	slices.Reverse(out)
	return out
}

// Every successful management write leaves an entry, also on routes that do not know the
// log; requests that read, fail or only try leave none.
func TestEveryManagementWriteIsLogged(t *testing.T) {
	t.Parallel()
	s := serve(t)
	project := s.URL + "/api/projects/1"
	s.write(t, "POST", project+"/dashboards/", `{"name":"Sales"}`)
	s.write(t, "POST", project+"/dead_letters/delete/", `{"all":true,"dry_run":true}`)
	s.write(t, "POST", project+"/dead_letters/delete/", `{"all":true}`)
	s.write(t, "POST", project+"/dead_letters/replay/", `{"ids":[7]}`)
	s.write(t, "POST", project+"/feature_flags/", `{"key":"nav","filters":{"groups":[{"rollout_percentage":10}]}}`)
	s.write(t, "POST", project+"/feature_flags/user_blast_radius/", `{"condition":{"properties":[]}}`)
	s.write(t, "POST", project+"/scheduled_changes/", fmt.Sprintf(`{"record_id":"1","model_name":"FeatureFlag","scheduled_at":%q,"payload":{"operation":"update_status","value":false}}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	if status, _, _ := s.request(t, "PATCH", project+"/event_definitions/none/", `{"description":"x"}`); status < 400 {
		t.Errorf("status %d", status)
	}
	want := []string{"Dashboard created 1", "DeadLetter delete ", "DeadLetter replay ", "FeatureFlag created 1", "ScheduledChange created "}
	if got := s.scopesOf(t, ""); !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
	if got := s.scopesOf(t, "scopes=Dashboard,FeatureFlag&activity=created&client_address=127.0.0.1&start_date=2026-01-01"); len(got) != 2 {
		t.Errorf("filtered: %q", got)
	}
	if got := s.scopesOf(t, "end_date=2026-01-01"); len(got) != 0 {
		t.Errorf("before the test: %q", got)
	}
	if status, _, _ := s.request(t, "GET", s.URL+"/api/organizations/@current/activity_log/?start_date=soon", ""); status != http.StatusBadRequest {
		t.Errorf("a wrong date is answered with %d", status)
	}
}

// Wrong keys are counted by client and reason, without the keys.
func TestFailedSignInsAreLogged(t *testing.T) {
	t.Parallel()
	var cfg app.Config
	s := serve(t, func(c *app.Config) { cfg = *c })
	for range 3 {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/projects/1/", nil)
		req.Header.Set("Authorization", "Bearer phx_wrong00000000000000000000000000000000000000")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	if err := s.Stop(); err != nil { // writes what was counted
		t.Fatal(err)
	}
	d, err := app.OpenAudit(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	var export bytes.Buffer
	if err := d.SealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Export(t.Context(), 0, &export); err != nil {
		t.Fatal(err)
	}
	if text := export.String(); strings.Count(text, `"activity":"sign_in_failed"`) != 1 || !strings.Contains(text, `"count":3`) || !strings.Contains(text, `"client_address":"127.0.0.1"`) || strings.Contains(text, "phx_") {
		t.Errorf("the log has %s", text)
	}
}

// The log and its export hold no secret of any kind; the chain of a server verifies.
func TestTheLogHoldsNoSecret(t *testing.T) {
	t.Parallel()
	var cfg app.Config
	s := serve(t, func(c *app.Config) { cfg = *c })
	secrets := []string{s.PersonalKey}
	var made map[string]any
	add := func(answer string, fields ...string) {
		t.Helper()
		made = map[string]any{}
		if err := json.Unmarshal([]byte(answer), &made); err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			text, ok := made[f].(string)
			if !ok || len(text) < 10 {
				t.Fatalf("no %s in %s", f, answer)
			}
			secrets = append(secrets, text)
		}
	}
	add(s.write(t, "POST", s.URL+"/api/personal_api_keys/", `{"label":"mine","scopes":["*"]}`), "value")
	add(s.write(t, "PATCH", s.URL+"/api/projects/1/rotate_secret_token/", ""), "secret_api_token")
	s.write(t, "POST", s.URL+"/api/projects/1/feature_flags/", `{"key":"conf","is_remote_configuration":true,"has_encrypted_payloads":true,"filters":{"groups":[{"rollout_percentage":100}],"payloads":{"true":"\"hidden-payload-text\""}}}`)
	secrets = append(secrets, "hidden-payload-text")
	a, err := app.OpenAdmin(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	personal, err := a.NewPersonalKey(t.Context(), 1, "shell", []string{"*"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := a.NewSecretKey(t.Context(), 1, "shell", []string{"feature_flag:read"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	secrets = append(secrets, personal, secret)

	c := chain.New(s.DB)
	if err := c.SealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	var export bytes.Buffer
	if _, err := c.Export(t.Context(), 0, &export); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(export.String(), "\n"); n < 5 {
		t.Errorf("%d entries", n)
	}
	for _, text := range secrets {
		if strings.Contains(export.String(), text) {
			t.Errorf("the export has %.12s…", text)
		}
	}
	report, err := c.Verify(t.Context())
	if err != nil || len(report.Problems) > 0 || report.Unsealed > 0 {
		t.Errorf("report %+v, %v", report, err)
	}
	var head chain.Head
	if err := json.Unmarshal([]byte(s.write(t, "GET", s.AdminURL+"/api/activity_log/head", "")), &head); err != nil || head != report.Head {
		t.Errorf("head %v, %v; want %v", head, err, report.Head)
	}
}

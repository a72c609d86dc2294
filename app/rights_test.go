package app_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/auth"
)

// TestPluginAdministrationNeedsAnOperator pauses and reads plugin instances with
// the keys of all kinds of users.
func TestPluginAdministrationNeedsAnOperator(t *testing.T) {
	t.Parallel()
	w := newTenants(t)
	for _, name := range []string{"owner", "admin", "member", "viewer", "stranger"} {
		for _, r := range []string{"GET ", "GET lines", "GET lines/logs", "GET absent", "POST lines/pause", "POST lines/resume", "POST lines/restart", "POST lines/release", "POST lines/check", "POST reload"} {
			method, path, _ := strings.Cut(r, " ")
			status, body := w.as(t, w.keys[name], method, "/api/plugins/"+path, "")
			if status != 403 || !strings.Contains(body, `"code":"permission_denied"`) {
				t.Errorf("%s of %s = %d %s, want 403", r, name, status, body)
			}
		}
	}
	if status, body := w.as(t, w.keys["operator"], "POST", "/api/plugins/lines/pause", ""); status != 200 {
		t.Errorf("pause of an operator = %d %s", status, body)
	}
	check(t, w.auth.SetOperator(t.Context(), w.users["stranger"].ID, true))
	w.keys["stranger"] = w.key(t, "stranger", auth.NewPersonalKey{Scopes: []string{"plugin:write"}})
	if status, body := w.as(t, w.keys["stranger"], "POST", "/api/plugins/lines/resume", ""); status != 200 {
		t.Errorf("resume of a new operator = %d %s", status, body)
	}
}

// TestStoredValuesNeedTheirScope asks for persons and messages with a key for
// actions only.
func TestStoredValuesNeedTheirScope(t *testing.T) {
	t.Parallel()
	w := newTenants(t)
	narrow := w.key(t, "operator", auth.NewPersonalKey{Scopes: []string{"action:write", "feature_flag:write"}})
	wide := w.key(t, "operator", auth.NewPersonalKey{Scopes: []string{"action:write", "event:read", "person:read"}})
	const people = "/api/projects/1/actions/people/?entity_type=events&entity_id=paid"
	if status, body := w.as(t, narrow, "GET", people, ""); status != 403 || !strings.Contains(body, "person:read") {
		t.Errorf("people = %d %s, want 403", status, body)
	}
	status, body := w.as(t, narrow, "GET", people+"&personal_api_key="+narrow, "")
	if status != 403 {
		t.Errorf("people = %d %s, want 403", status, body)
	}
	status, body = w.as(t, wide, "GET", people+"&offset=100&personal_api_key="+wide, "")
	if status != 200 || strings.Contains(body, wide) || !strings.Contains(body, `"previous":"http`) {
		t.Errorf("people = %d %s, want 200 and links without the key", status, body)
	}
}

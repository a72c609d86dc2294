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

package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/web/ignored"
)

// withoutFields are the paths whose PATCH is an action without fields.
var withoutFields = []string{"/api/projects/:project_id/rotate_secret_token", "/api/projects/:project_id/delete_secret_token_backup"}

// TestEveryRouteNamesWhatItIgnores sends a parameter and a field that no route
// knows to every management route. An answer that is not an error must name them,
// and a PATCH with nothing but the unknown field must fail.
func TestEveryRouteNamesWhatItIgnores(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	const unknown = "no_such_name"
	succeeded, rejected := 0, 0
	for _, a := range readAccess(t) {
		if len(a.scopes()) == 0 && !a.need("any-key") || a.method == "OPTIONS" {
			continue
		}
		holder := &credential{key: w.PersonalKey}
		body := map[string]any{}
		check(t, json.Unmarshal([]byte(strings.TrimSpace("{"+strings.Trim(w.body(a), "{}")+"}")), &body))
		body[unknown+"_field"] = 1
		sent := a.method != "GET" && a.method != "DELETE"
		status, header, answer := w.sendUnknown(t, a, holder, unknown, body)
		if a.method == "PATCH" && !slices.Contains(withoutFields, a.path) {
			if status != 400 && !strings.Contains(w.path(t, a, holder, false), absent) {
				t.Errorf("%s with an unknown field only: %d %.200s, want 400", a.name(), status, answer)
			}
			rejected++
			continue
		}
		if status >= 400 || status == http.StatusNotModified {
			continue
		}
		succeeded++
		if !strings.Contains(header, unknown+"_parameter") || sent && !strings.Contains(header, unknown+"_field") {
			t.Errorf("%s: %d with %s: %q", a.name(), status, ignored.Header, header)
		}
	}
	if succeeded < 50 || rejected < 10 {
		t.Errorf("only %d requests succeeded and %d were PATCHes", succeeded, rejected)
	}
}

func (w *accessWorld) sendUnknown(t *testing.T, a access, c *credential, unknown string, body map[string]any) (status int, header, answer string) {
	t.Helper()
	base := w.URL
	if a.address == "admin" {
		base = w.AdminURL
	}
	text, err := json.Marshal(body)
	check(t, err)
	if a.method == "GET" || a.method == "DELETE" {
		text = nil
	}
	req, err := http.NewRequestWithContext(t.Context(), a.method, base+w.path(t, a, c, true)+"?"+unknown+"_parameter=1", strings.NewReader(string(text)))
	check(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.key)
	res, err := w.client.Do(req)
	check(t, err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	check(t, err)
	return res.StatusCode, res.Header.Get(ignored.Header), string(got)
}

package app_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
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

// TestPersonalKeysAreNeverStored captures with personal keys in every place and
// searches the database, the journal and the output of the sink for them.
func TestPersonalKeysAreNeverStored(t *testing.T) {
	t.Parallel()
	dir := ""
	w := newTenants(t, func(c *app.Config) { dir = filepath.Dir(c.DataDir) })
	key := w.keys["member"]
	escaped := strings.Replace(key, "phx_", `\u0070hx_`, 1)
	bodies := []string{
		`{"api_key":"` + key + `","project_id":1,"event":"e0","distinct_id":"u"}`,
		`{"token":" ` + key + ` ","event":"e1","distinct_id":"u"}`,
		`{"event":"e2","distinct_id":"u","properties":{"token":"` + key + `","api_key":"` + key + `","$token":"` + key + `"}}`,
		`{"api_key":"` + escaped + `","event":"e3","distinct_id":"u"}`,
		`{"api_key":"` + w.ProjectKey + `","event":"e4","distinct_id":"u","properties":{"personal_api_key":"` + key + `","$current_url":"https://a/?personal_api_key=` + key + `&x"}}`,
		`{"api_key":"` + key + `","batch":[{"event":"e5","distinct_id":"u","properties":{"token":"` + key + `","note":"` + escaped + `"}}]}`,
		`[{"event":"e6","distinct_id":"u","api_key":"` + key + `"},{"event":"` + key + `","distinct_id":"` + key + `","api_key":"` + key + `"}]`,
		`{"api_key":"` + w.ProjectKey + `","event":"$identify","distinct_id":"u","$set":{"secret_api_key":"` + key + `"}}`,
		`{"api_key":"` + w.ProjectKey + `","event":"dropped","properties":{"token":"` + key + `"}}`,
	}
	for _, body := range bodies {
		if status, answer := w.as(t, "", "POST", "/capture/", body); status != 200 {
			t.Fatalf("%s = %d %s", body, status, answer)
		}
	}
	if status, answer := w.as(t, key, "POST", "/decide?v=3", `{"distinct_id":"u","person_properties":{"token":"`+key+`"}}`); status != 200 {
		t.Fatalf("decide = %d %s", status, answer)
	}
	waitFor(t, "the events in the database and in the sink", func() bool {
		_, stored := w.as(t, w.keys["operator"], "GET", "/api/projects/1/events/?limit=100", "")
		lines, _ := os.ReadFile(w.Lines)
		ready := true
		for i := range 7 {
			name := fmt.Sprintf(`"e%d"`, i)
			ready = ready && strings.Contains(stored, name) && bytes.Contains(lines, []byte(name))
		}
		return ready
	})
	found := 0
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		found++
		if bytes.Contains(content, []byte(key[4:])) {
			t.Errorf("%s contains the key", path)
		}
		return err
	}))
	if found < 3 {
		t.Errorf("searched only %d files in %s", found, dir)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seed is the seed of generated tests: GUIDON_E2E_SEED, or 1.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("GUIDON_E2E_SEED")
	if text == "" {
		text = "1"
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("GUIDON_E2E_SEED: %v", err)
	}
	t.Logf("seed %d: repeat with GUIDON_E2E_SEED=%d", n, n)
	return n
}

// TestOpenAPI sends requests that schemathesis generates from api/openapi.yaml, with
// a personal key and with a project key. No answer is 5xx, and the document has the
// status, the content type and the shape of every answer.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	dir := install(t, "schemathesis")
	runs := []struct {
		name, key string
		seconds   int
		filter    []string
	}{
		{"personal key", "personal", 80, nil},
		{"project key", "project", 40, []string{"--include-tag", "capture", "--include-tag", "decide", "--include-tag", "ofrep"}},
	}
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			key := s.personal
			if run.key == "project" {
				key = s.project
			}
			config := filepath.Join(t.TempDir(), "schemathesis.toml")
			if err := os.WriteFile(config, []byte(s.fixtures(t)), 0o600); err != nil {
				t.Fatal(err)
			}
			document, err := filepath.Abs(filepath.Join("..", "api", "openapi.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--config-file", config, "--no-color", "run", document, "--url", s.url, "-H", "Authorization: Bearer " + key,
				"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance",
				"--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", fmt.Sprint(seed(t)), "--max-time", fmt.Sprint(run.seconds),
				"--workers", "1", "--continue-on-failure", "--suppress-health-check", "all", "--generation-database", "none", "--warnings", "off",
			}, run.filter...)
			cmd := exec.Command(filepath.Join(dir, "venv/bin/schemathesis"), args...)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, tail(out, 30000))
			}
			t.Logf("%s", tail(out, 800))
		})
	}
}

// fixtures creates one of each thing and returns the config of schemathesis that
// names them, so that requests reach more than 404.
func (s *server) fixtures(t *testing.T) string {
	t.Helper()
	body := fmt.Sprintf(`{"api_key":%q,"event":"signed up","distinct_id":"ada","properties":{"$set":{"plan":"pro"},"$groups":{"company":"acme"},"seats":3}}`, s.project)
	if err := s.status(http.MethodPost, "/capture/", strings.NewReader(body), http.StatusOK); err != nil {
		t.Fatal(err)
	}
	create := func(path string, body any) string {
		var created struct {
			ID json.RawMessage `json:"id"`
		}
		s.do(t, http.MethodPost, path, body, &created, http.StatusCreated)
		return string(created.ID)
	}
	var first struct {
		Results []struct {
			ID   json.RawMessage `json:"id"`
			UUID json.RawMessage `json:"uuid"`
		} `json:"results"`
	}
	found := func(path string) string {
		eventually(t, 20*time.Second, "there is one in "+path, func() error {
			first.Results = nil
			s.do(t, http.MethodGet, path, nil, &first, http.StatusOK)
			if len(first.Results) == 0 {
				return fmt.Errorf("none")
			}
			return nil
		})
		if first.Results[0].UUID != nil {
			return string(first.Results[0].UUID)
		}
		return string(first.Results[0].ID)
	}
	const project = "/api/projects/@current/"
	ids := []struct{ path, parameter, value string }{
		{"/feature_flags/", "id", create(project+"feature_flags/", map[string]any{"key": "beta", "filters": json.RawMessage(corpus[3].filters)})},
		{"/cohorts/", "id", create(project+"cohorts/", map[string]any{"name": "pro", "is_static": true})},
		{"/actions/", "id", create(project+"actions/", map[string]any{"name": "sign-ups", "steps": []any{map[string]any{"event": "signed up"}}})},
		{"/events/", "uuid", found(project + "events/")},
		{"/persons/", "id", found(project + "persons/")},
		{"/event_definitions/", "id", found(project + "event_definitions/")},
		{"/property_definitions/", "id", found(project + "property_definitions/")},
		{"/roles/", "role_id", create("/api/organizations/@current/roles/", map[string]any{"name": "editors"})},
	}
	config := "parameters = { \"path.project_id\" = \"@current\", \"path.organization_id\" = \"@current\", \"path.parent_lookup_feature_flag_id\" = \"1\", \"path.token\" = \"" + s.project + "\" }\n"
	// These paths are on the admin address, end the key or the project of the test, or
	// answer with a stream that does not end.
	for _, path := range []string{"^/(metrics|debug|api/plugins|openapi)", "/(personal_api_keys|keys)/\\{id", "^/api/projects/\\{project_id\\}$", "/changes$"} {
		config += fmt.Sprintf("[[operations]]\ninclude-path-regex = %q\nenabled = false\n", path)
	}
	for _, id := range ids {
		config += fmt.Sprintf("[[operations]]\ninclude-path-regex = %q\nparameters = { \"path.%s\" = %s }\n", id.path+`\{`+id.parameter+`\}`, id.parameter, id.value)
	}
	return config
}

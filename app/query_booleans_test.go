package app_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Each boolean of the query in api/openapi.yaml is refused if it is none, and taken in any
// case of its letters.
func TestWrongBooleansAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	requests := map[string][]string{
		"deleted":                 {"GET /api/projects/1/feature_flags/", "GET /api/projects/1/actions/"},
		"is_numerical":            {"GET /api/projects/1/property_definitions/"},
		"is_feature_flag":         {"GET /api/projects/1/property_definitions/"},
		"exclude_core_properties": {"GET /api/projects/1/property_definitions/"},
		"verified":                {"GET /api/projects/1/property_definitions/", "GET /api/projects/1/event_definitions/"},
		"exclude_hidden":          {"GET /api/projects/1/property_definitions/", "GET /api/projects/1/event_definitions/"},
		"replay_waiting":          {"GET /api/projects/1/dead_letters/"},
		"is_identified":           {"GET /api/projects/1/persons/"},
		"delete_events":           {"DELETE /api/projects/1/persons/01a20bbd-9d4b-7e74-82c8-262258d48beb/"},
		"dry_run":                 {"POST /api/plugins/reload"},
	}
	for _, m := range regexp.MustCompile(`\{name: (\w+), in: query, schema: \{type: boolean`).FindAllStringSubmatch(readDocument(t, "api/openapi.yaml"), -1) {
		if requests[m[1]] == nil {
			t.Errorf("no request of the test has %s", m[1])
		}
	}
	for name, all := range requests {
		for _, request := range all {
			method, path, _ := strings.Cut(request, " ")
			base := s.URL
			if name == "dry_run" {
				base = s.AdminURL
			}
			if code, raw, _ := s.request(t, method, base+path+"?"+name+"=maybe", ""); code != http.StatusBadRequest || !strings.Contains(raw, `"attr":"`+name+`"`) {
				t.Errorf("%s with %s=maybe: %d %s", request, name, code, raw)
			}
			for _, value := range []string{"True", "0"} {
				if code, raw, _ := s.request(t, method, base+path+"?"+name+"="+value, ""); method == "GET" && code != http.StatusOK {
					t.Errorf("%s with %s=%s: %d %s", request, name, value, code, raw)
				}
			}
		}
	}
}

// A filter that cannot be read selects no rows: callers delete what lists select.
func TestWrongFiltersAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for name, paths := range map[string][]string{
		"active":        {"feature_flags/", "feature_flags/matching_ids/"},
		"created_by_id": {"feature_flags/", "feature_flags/matching_ids/", "actions/"},
	} {
		for _, path := range paths {
			for value, want := range map[string]int{"": 200, "1": 200, "maybe": 400, "-1": 400, "99999999999999999999": 400} {
				code, raw, _ := s.request(t, "GET", s.URL+"/api/projects/1/"+path+"?"+name+"="+value, "")
				if code != want || want == 400 && !strings.Contains(raw, `"attr":"`+name+`"`) {
					t.Errorf("%s with %s=%s: %d %s", path, name, value, code, raw)
				}
			}
		}
	}
}

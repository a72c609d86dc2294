//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"
)

// TestOtherProject evaluates the flags of a second project, locally and remotely, with
// a personal key whose user has another current project.
func TestOtherProject(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(t, flag{key: "everyone", filters: corpus[1].filters}) // off in the first project
	var made struct {
		ID       int64
		APIToken string `json:"api_token"`
	}
	s.do(t, http.MethodPost, "/api/projects/", map[string]any{"name": "two"}, &made, http.StatusCreated)
	second := *s
	second.project = made.APIToken
	flags := []flag{corpus[0], corpus[4]}
	for _, f := range flags {
		s.do(t, http.MethodPost, fmt.Sprintf("/api/projects/%d/feature_flags/", made.ID), map[string]any{"key": f.key, "filters": json.RawMessage(f.filters)}, nil, http.StatusCreated)
	}
	var first struct{ ID int64 }
	s.do(t, http.MethodGet, "/api/projects/@current/", nil, &first, http.StatusOK)
	if first.ID == made.ID {
		s.do(t, http.MethodPatch, "/api/users/@me/", map[string]any{"set_current_project": 1}, nil, http.StatusOK)
	}
	for _, c := range clients[2:] {
		t.Run(c.name, func(t *testing.T) {
			got := c.run(t, &second, "other", flags)
			for id, remote := range got.Remote {
				if remote["everyone"] != true || !reflect.DeepEqual(remote, got.Local[id]) {
					t.Fatalf("%s: remote %v, local %v", id, remote, got.Local[id])
				}
			}
		})
	}
}

// TestPostHogProviders evaluates flags with PostHog's own providers for OpenFeature.
func TestPostHogProviders(t *testing.T) {
	longTest(t)
	t.Parallel()
	s := start(t)
	s.create(t, corpus[0])
	s.create(t, corpus[1])
	s.create(t, corpus[4])
	s.create(t, flag{key: "colour", filters: variants("blue", "1", "red", "2", "", "")})
	person := map[string]any{"targetingKey": "ada", "plan": "pro"}
	asked := []scenario{
		{"everyone", "boolean", false, person, true, "", "", ""},
		{"off", "boolean", true, person, false, "", "", ""},
		{"pro", "boolean", false, person, true, "", "", ""},
		{"colour", "string", "none", person, "blue", "", "", ""},
		{"pro", "object", map[string]any{}, person, map[string]any{"a": 1.0}, "", "", ""},
		{"missing", "boolean", true, person, true, "", "", "FLAG_NOT_FOUND"},
	}
	for _, c := range []client{
		{name: "openfeature-provider-posthog 0.1.125 (Python)", dir: "openfeature-python", command: []string{"venv/bin/python", "posthog_provider.py"}},
		{name: "@posthog/openfeature-web-provider 0.1.0 in Chromium", dir: "browser", command: []string{"node", "posthog-provider.mjs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []resolution
			script(t, install(t, c.dir), s.task(map[string]any{"scenarios": asked}), &got, c.command...)
			for i, want := range asked {
				if i >= len(got) || !reflect.DeepEqual(got[i].Value, want.value) || got[i].Code != want.code {
					t.Errorf("%s as %s: got %+v, want %v, code %q", want.Key, want.Type, got[min(i, len(got)-1)], want.value, want.code)
				}
			}
		})
	}
}

//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// serverSide is what the scripts secret.mjs and secret.py print: they use the client
// with a secret key of the project instead of a personal key.
type serverSide struct {
	Local    map[string]any
	Config   any // the payload of a remote configuration
	Failures []string
}

// TestSecretKey evaluates flags locally and reads an encrypted remote configuration
// with the secret key of a project, as set-ups of 2026 do. posthog-python also sends
// an AI event to the endpoint of its own, and events by the capture protocol of 2026.
func TestSecretKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, f := range corpus[:5] {
		s.create(t, f)
	}
	const secret = `{"token":"hunter2"}`
	s.do(t, http.MethodPost, "/api/projects/1/feature_flags/", map[string]any{
		"key": "remote-config", "is_remote_configuration": true, "has_encrypted_payloads": true,
		"filters": map[string]any{"groups": []any{map[string]any{"properties": []any{}, "rollout_percentage": 100}}, "payloads": map[string]any{"true": secret}},
	}, nil, http.StatusCreated)
	var key struct{ Value string }
	s.do(t, http.MethodPost, "/api/projects/1/project_secret_api_keys/", map[string]any{"label": "server", "scopes": []string{"feature_flag:read"}}, &key, http.StatusCreated)
	if !strings.HasPrefix(key.Value, "phs_") {
		t.Fatalf("secret key %q", key.Value)
	}
	clients := []client{
		{name: "posthog-node 5.70.0", dir: "node", command: []string{"node", "secret.mjs", "posthog-node-newest"}},
		{name: "posthog-python 7.91.1", dir: "python", command: []string{"newest/bin/python", "secret.py"}},
	}
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			s, count := s.counted(t)
			var got serverSide
			script(t, install(t, c.dir), s.task(map[string]any{"secret_key": key.Value, "id": "distinct_id_1", "properties": people()[1].Properties, "config": "remote-config"}), &got, c.command...)
			if len(got.Failures) > 0 || count("/flags") > 0 {
				t.Errorf("failures %q, %d requests for flags: local evaluation has none", got.Failures, count("/flags"))
			}
			var answer struct{ FeatureFlags map[string]any }
			s.do(t, http.MethodPost, "/decide/?v=3", map[string]any{"api_key": s.project, "distinct_id": "distinct_id_1", "person_properties": people()[1].Properties}, &answer, http.StatusOK)
			delete(answer.FeatureFlags, "remote-config")
			delete(got.Local, "remote-config")
			if len(got.Local) == 0 || !reflect.DeepEqual(got.Local, answer.FeatureFlags) {
				t.Errorf("local %v, remote %v", got.Local, answer.FeatureFlags)
			}
			if text, ok := got.Config.(string); ok { // some clients leave decoding to the application
				_ = json.Unmarshal([]byte(text), &got.Config)
			}
			if !reflect.DeepEqual(got.Config, map[string]any{"token": "hunter2"}) {
				t.Errorf("remote configuration: %v", got.Config)
			}
		})
	}
	eventually(t, 20*time.Second, "the AI event and the event of protocol v1 are stored", func() error {
		ai, v1 := s.stored(t, "$ai_generation"), s.stored(t, "by_v1")
		if len(ai) != 1 || len(v1) != 1 {
			return fmt.Errorf("%d AI events, %d by_v1", len(ai), len(v1))
		}
		if v1[0].Properties["$lib"] != "posthog-python" || v1[0].Properties["$lib_version"] != "7.91.1" {
			t.Fatalf("library of the event by_v1: %v %v", v1[0].Properties["$lib"], v1[0].Properties["$lib_version"])
		}
		return nil
	})
}

//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestConsoleFlags works with calls, scheduled changes, early access and holdouts of flags
// in Chromium, and asks the API for the effect of each step.
func TestConsoleFlags(t *testing.T) { onDatabases(t, testConsoleFlags) }

func testConsoleFlags(t *testing.T, database []string) {
	s := start(t, database...)
	for key, filters := range map[string]string{
		"new-nav": `{"groups": [{"properties": [], "rollout_percentage": 50}], "multivariate": {"variants": [{"key": "control", "rollout_percentage": 50}, {"key": "test", "rollout_percentage": 50}]}}`,
		"hostile": `{"groups": [{"properties": [], "rollout_percentage": 10}]}`,
	} {
		s.do(t, http.MethodPost, "/api/projects/1/feature_flags/", map[string]any{"key": key, "name": hostile, "filters": json.RawMessage(filters)}, nil, http.StatusCreated)
	}
	for person, answer := range map[string]string{"ada": "control", "bob": "control", "cyd": "test"} {
		event, err := json.Marshal(map[string]any{"api_key": s.project, "event": "$feature_flag_called", "distinct_id": person, "properties": map[string]any{"$feature_flag": "new-nav", "$feature_flag_response": answer}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.status(http.MethodPost, "/capture/", bytes.NewReader(event), http.StatusOK); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, "three stored calls", func() error {
		if n := len(s.stored(t, "%24feature_flag_called")); n != 3 {
			return fmt.Errorf("%d calls are stored", n)
		}
		return nil
	})
	s.do(t, http.MethodPost, "/api/projects/1/cohorts/", map[string]any{"name": hostile, "filters": json.RawMessage(`{"properties": {"type": "AND", "values": [{"key": "plan", "type": "person", "value": "pro"}]}}`)}, nil, http.StatusCreated)
	for name, plugin := range map[string]string{"networks": "cidr", "schedules": "schedule"} {
		s.do(t, http.MethodPut, "/api/plugins/"+name+"/config/", map[string]any{"plugin": plugin, "kind": "matcher", "config": map[string]any{}}, nil, http.StatusOK)
	}
	eventually(t, time.Minute, "operators of both plugins", func() error {
		var list struct {
			Results []struct{ Operators []struct{ ID string } }
		}
		s.do(t, http.MethodGet, "/api/plugins/", nil, &list, http.StatusOK)
		ready := 0
		for _, p := range list.Results {
			if len(p.Operators) > 0 {
				ready++
			}
		}
		if ready != 2 {
			return fmt.Errorf("%d instances with operators", ready)
		}
		return nil
	})
	manyNames(t, s)
	inBrowser(t, s, "flags.mjs", nil)
}

const manyOf = 510 // names and cohorts, more than any list of the console loads

// manyNames makes more properties of persons and more cohorts than lists show. The first are
// the last of a list that begins with the newest.
func manyNames(t *testing.T, s *server) {
	t.Helper()
	set := map[string]any{}
	for i := range manyOf {
		set[fmt.Sprintf("trait %03d", i)] = "yes"
	}
	s.do(t, http.MethodPost, "/capture/", map[string]any{"api_key": s.project, "event": "seen", "distinct_id": "ada", "properties": map[string]any{"$set": set}}, nil, http.StatusOK)
	eventually(t, time.Minute, "the names are there", func() error {
		var got struct{ Count int }
		s.do(t, http.MethodGet, "/api/projects/1/property_definitions/?type=person&limit=1", nil, &got, http.StatusOK)
		if got.Count < manyOf {
			return fmt.Errorf("%d names", got.Count)
		}
		return nil
	})
	for i := range manyOf {
		s.do(t, http.MethodPost, "/api/projects/1/cohorts/", map[string]any{"name": fmt.Sprintf("Group %03d", i), "filters": json.RawMessage(`{"properties": {"type": "AND", "values": [{"key": "plan", "type": "person", "value": "pro"}]}}`)}, nil, http.StatusCreated)
	}
}

//go:build e2e

package e2e_test

import (
	"net/http"
	"testing"
)

// TestOldestPython captures with the oldest posthog-python of PyPI, 1.0.0. It has no
// feature flags.
func TestOldestPython(t *testing.T) {
	longTest(t)
	t.Parallel()
	s := start(t)
	for _, f := range corpus {
		s.create(t, f)
	}
	var got clientResult
	script(t, install(t, "python"), s.task(map[string]any{"run": "oldest"}), &got, "oldest/bin/python", "oldest.py")
	if len(got.Failures) > 0 {
		t.Errorf("the client reported failures: %q", got.Failures)
	}
	checkArrived(t, s, "oldest")
}

// TestPythonBeforeLocalEvaluation evaluates flags with posthog-python 1.4.9. It loads
// simple flags from /api/feature_flag/ and hashes them itself; its values agree with
// those of /decide/.
func TestPythonBeforeLocalEvaluation(t *testing.T) {
	longTest(t)
	t.Parallel()
	s := start(t)
	keys := []string{}
	for _, f := range corpus {
		s.create(t, f)
		keys = append(keys, f.key)
	}
	var got clientResult
	script(t, install(t, "python"), s.task(map[string]any{"ids": people()[:40], "keys": keys}), &got, "v1.4/bin/python", "v1.4.py")
	if len(got.Failures) > 0 {
		t.Errorf("the client reported failures: %q", got.Failures)
	}
	for _, p := range people()[:40] {
		var answer struct{ FeatureFlags map[string]any }
		s.do(t, http.MethodPost, "/decide/?v=3", map[string]any{"api_key": s.project, "distinct_id": p.ID}, &answer, http.StatusOK)
		for _, key := range keys {
			want := answer.FeatureFlags[key]
			if local := got.Local[p.ID][key]; local != want {
				t.Errorf("%s for %s: feature_enabled %v, want %v", key, p.ID, local, want)
			}
			if remote, sent := got.Remote[p.ID][key]; sent && remote != want || !sent && want != false {
				t.Errorf("%s for %s: get_feature_variants %v, want %v", key, p.ID, remote, want)
			}
		}
	}
}

//go:build e2e

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// browserLibrary installs posthog-js with the command for operators and returns its
// directory.
func browserLibrary(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(workDir(t), "clients")
	cmd := exec.Command(binary(t), "clients", "install", "1.449.2")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GUIDON_CLIENTS_DIR="+dir, "GUIDON_DATA_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("guidon clients install: %v\n%s", err, out)
	}
	return dir
}

// TestSnippet opens a site with the HTML snippet of posthog-js in Chromium. Every
// script is there, events arrive, flags and early access features work, and no
// request of a page view fails.
func TestSnippet(t *testing.T) {
	t.Parallel()
	dir := install(t, "browser")
	s := start(t, "GUIDON_CLIENTS_DIR="+browserLibrary(t))
	s.create(t, corpus[0])
	for _, f := range corpus {
		if f.key == "pro" || f.key == "grown-up" {
			s.create(t, f)
		}
	}
	s.create(t, flag{key: "early-access", filters: `{"groups":[{"properties":[],"rollout_percentage":0}],
		"super_groups":[{"properties":[{"key":"$feature_enrollment/early-access","type":"person","operator":"exact","value":["true"]}],"rollout_percentage":100}]}`})
	var got struct {
		Version                          string
		Flag                             any
		Payload                          any
		Features                         []struct{ FlagKey string }
		Enrolled                         []any
		Surveys                          struct{ Context map[string]any }
		Missing, Scripts, Failed, Errors []string
	}
	script(t, dir, s.task(map[string]any{"run": "web", "probe": "pro"}), &got, "node", "snippet.mjs")
	t.Logf("posthog-js %s loaded %q", got.Version, got.Scripts)
	if got.Flag != true || fmt.Sprint(got.Payload) != "map[a:1]" {
		t.Errorf("flag %v, payload %v", got.Flag, got.Payload)
	}
	if len(got.Missing) > 0 || len(got.Errors) > 0 {
		t.Errorf("requests answered with an error: %q; errors in the console: %q", got.Missing, got.Errors)
	}
	if len(got.Features) != 1 || got.Features[0].FlagKey != "early-access" || !slices.Equal(got.Enrolled, []any{false, true}) {
		t.Errorf("early access features %v, the flag before and after enrolment %v", got.Features, got.Enrolled)
	}
	if got.Surveys.Context["isLoaded"] != true {
		t.Errorf("surveys: %v", got.Surveys.Context)
	}
	for _, name := range []string{"exception-autocapture", "web-vitals", "dead-clicks-autocapture"} {
		if !slices.ContainsFunc(got.Scripts, func(path string) bool { return strings.Contains(path, name) }) {
			t.Errorf("the page did not load %s", name)
		}
	}
	checkArrived(t, s, "web")
	for _, name := range []string{"$pageview", "$autocapture", "$exception", "$pageleave", "$groupidentify"} {
		eventually(t, 10*time.Second, name+" is stored", func() error {
			if len(s.stored(t, name)) == 0 {
				return fmt.Errorf("no %s", name)
			}
			return nil
		})
	}
	s.do(t, http.MethodGet, "/api/projects/1/persons/?distinct_id=web-stored", nil, nil, http.StatusOK)
}

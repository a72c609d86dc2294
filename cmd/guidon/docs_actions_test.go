package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test runs the commands of the guide to actions in one shell.
func TestActionsGuideRuns(t *testing.T) {
	needCommand(t, "curl", "curl")
	t.Parallel()
	hook := newEndpoint(t)
	s := newServer(t)
	write(t, s.config(), "notifications: {every: 0s}\nplugins:\n  instances:\n"+notifier("team", hook.URL))
	s.start(t)
	until(t, func() string {
		var one struct{ State string }
		if s.get(t, "/api/plugins/team/", &one); one.State != "ready" {
			return one.State
		}
		return ""
	})
	script := strings.ReplaceAll(fencedText(t, "../../docs/actions.md", "sh"), "http://localhost:8000", s.url)
	if strings.Count(script, "curl ") < 8 {
		t.Fatalf("too few commands:\n%s", script)
	}
	cmd := exec.Command("bash", "-euxo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "PROJECT_KEY="+s.project, "PERSONAL_KEY="+s.personal)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"outcome":"delivered"`) {
		t.Fatalf("%v\n%s", err, out)
	}
	if code, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"paid","distinct_id":"bob","properties":{"amount":99}}`); err != nil || code != http.StatusOK {
		t.Fatalf("capture: %d %v", code, err)
	}
	until(t, func() string {
		received := strings.Join(hook.received(), "\n")
		if !strings.Contains(received, "bob paid 99") || strings.Count(received, "Again: paid") != 2 { // the test notification and this one
			return received
		}
		return ""
	})
}

package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The guide to actions is run as it stands there, in one shell.
func TestTheGuideToActionsWorks(t *testing.T) {
	t.Parallel()
	room := newEndpoint(t)
	s := newServer(t)
	write(t, s.config(), "notifications: {every: 0s}\nplugins:\n  instances:\n"+notifier("team", room.URL))
	s.start(t)
	until(t, 20*time.Second, func() string {
		var one struct{ State string }
		if s.get(t, "/api/plugins/team/", &one); one.State != "ready" {
			return one.State
		}
		return ""
	})
	script := strings.ReplaceAll(fenced(t, "../../docs/actions.md", "sh"), "http://localhost:8000", s.url)
	if strings.Count(script, "curl ") < 8 {
		t.Fatalf("only this is there:\n%s", script)
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
	until(t, 20*time.Second, func() string {
		told := strings.Join(room.told(), "\n")
		if !strings.Contains(told, "bob paid 99") || strings.Count(told, "Again: paid") != 2 { // the test and this one
			return told
		}
		return ""
	})
}

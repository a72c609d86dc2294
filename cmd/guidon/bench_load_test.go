package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestBench loads a server by each path, reads the report, and exceeds a budget.
func TestBench(t *testing.T) {
	s := newServer(t)
	s.start(t)
	bench := func(path string, more ...string) (map[string]any, string, error) {
		args := []string{"bench", path, "--url", s.url, "--key", s.project, "--rate", "40", "--duration", "500ms", "--warmup", "0s", "--events", "5", "-o", "json"}
		text, err := s.guidon(append(args, more...)...)
		var report map[string]any
		_ = json.NewDecoder(strings.NewReader(text)).Decode(&report)
		return report, text, err
	}
	for _, path := range []string{"capture", "batch", "decide"} {
		report, text, err := bench(path, "--pid", fmt.Sprint(s.cmd.Process.Pid), "--errors", "0", "--memory", "10GiB")
		if err != nil || report["requests"] != 20.0 || report["failed"] != 0.0 {
			t.Errorf("%s: %v\n%s", path, err, text)
		}
	}
	until(t, func() string {
		var page struct {
			Results []struct{ Event string }
		}
		s.get(t, "/api/projects/1/events/?event=guidon%20bench&limit=1000", &page)
		if n := len(page.Results); n != 21+5*21 { // each run tries one request before it
			return fmt.Sprintf("%d events are stored", n)
		}
		return ""
	})
	if _, text, err := bench("decide", "--p50", "1us"); err == nil || !strings.Contains(text, "over the budget: p50 is ") {
		t.Errorf("over a budget: %v\n%s", err, text)
	}
	if text, err := s.guidon("bench", "decide", "--url", s.url, "--key", "phc_wrong"); err == nil || !strings.Contains(text, "is --key a project key of it?") {
		t.Errorf("a wrong key: %v\n%s", err, text)
	}
}

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The test runs the quick start of the README beside a server with the example
// configuration, as make run starts it.
func TestReadmeQuickStartRuns(t *testing.T) {
	needCommand(t, "curl", "curl")
	t.Parallel()
	s := newServer(t)
	example, err := os.ReadFile("../../guidon.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.config(), string(example))
	s.start(t)
	blocks := fencedBlocks(t, "../../README.md", "sh")
	if len(blocks) < 2 || strings.TrimSpace(blocks[0]) != "make run" || strings.Count(blocks[1], "curl ") != 3 {
		t.Fatalf("blocks of the README: %q", blocks)
	}
	// On a slow machine the file of the sink is there later than the README waits.
	if code, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"first","distinct_id":"u"}`); err != nil || code != 200 {
		t.Fatalf("capture: %d %v", code, err)
	}
	until(t, func() string {
		if _, err := os.Stat(filepath.Join(s.data(), "events", "events.ndjson")); err != nil {
			return err.Error()
		}
		return ""
	})
	script := strings.NewReplacer("curl ", "curl -sSf ", "localhost:8000", s.url, "phc_…", s.project, "phx_…", s.personal).Replace(blocks[1])
	out, err := s.runCommand("set -euo pipefail\n" + script)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{`{"status":1}`, `"key":"new-nav"`, `"new-nav":true`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

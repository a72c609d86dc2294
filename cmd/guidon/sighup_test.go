package main_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
)

// The config file stays unchanged; only a file that it refers to changes, so that
// only the signal can cause the reload.
func TestSIGHUPReloadsConfig(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	where, second := filepath.Join(s.dir, "where"), filepath.Join(s.dir, "second.ndjson")
	write(t, where, s.lines)
	write(t, s.config(), "plugins:\n  instances:\n    - name: lines\n      kind: sink\n      use: file\n      config: {path: \"${file:"+where+"}\"}\n")
	s.start(t)
	send := func(n int) string {
		id := fmt.Sprintf("0190bbbb-0000-7000-8000-%012d", n)
		code, err := s.post("/capture/", fmt.Sprintf(`{"api_key":%q,"event":"load","distinct_id":"d","uuid":%q}`, s.project, id))
		if err != nil || code != http.StatusOK {
			t.Fatal(code, err)
		}
		return id
	}
	first := send(1)
	until(t, func() string { return missingEvents(map[string]bool{first: true}, sinkEvents(t, s), "the first file") })
	write(t, where, second)
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		var p struct {
			State      string
			Generation int
		}
		s.get(t, "/api/plugins/lines/", &p)
		if p.State != "ready" || p.Generation != 2 {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
	next := send(2)
	s.lines = second
	until(t, func() string { return missingEvents(map[string]bool{next: true}, sinkEvents(t, s), "the second file") })
	if n := sinkEvents(t, s)[first]; n != 0 {
		t.Errorf("the first event was written again")
	}
}

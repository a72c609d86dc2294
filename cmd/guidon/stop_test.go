package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// SIGTERM ends a server with code 0 although its plugins hang, ignore SIGTERM and have
// timeouts far beyond the patience of the test; journal and database are closed, and
// nothing is lost.
func TestStopWithHungPlugins(t *testing.T) {
	t.Parallel()
	plugin := hangingPlugin(t)
	s := newServer(t)
	yaml, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(yaml), "plugins:\n", "plugins:\n  dev: true\n", 1)
	for _, in := range []string{"open", "write", "close"} {
		text += fmt.Sprintf("    - {name: %s, kind: sink, use: %s, config: {in: %s}, timeouts: {open: 1h, call: 1h, flush: 1h, drain: 1h, stop: 1h}}\n", in, plugin, in)
	}
	write(t, s.config(), text)
	s.start(t)
	until(t, func() string {
		var page struct {
			Results []struct{ Name, State string }
		}
		s.get(t, "/api/plugins", &page)
		states := ""
		for _, p := range page.Results {
			states += p.Name + " " + p.State + ", "
		}
		if !strings.Contains(states, "open configured") || !strings.Contains(states, "write ready") || !strings.Contains(states, "close ready") {
			return states
		}
		return ""
	})
	if status, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"e","distinct_id":"d"}`); status != http.StatusOK {
		t.Fatalf("capture: %d %v", status, err)
	}
	until(t, func() string {
		var sink struct {
			Delivery struct {
				InFlight int `json:"in_flight"`
			}
		}
		if s.get(t, "/api/plugins/write/", &sink); sink.Delivery.InFlight == 0 {
			return "no batch is in flight to the sink that hangs in Write"
		}
		return ""
	})
	begin := time.Now()
	if err := s.stop(t); err != nil {
		t.Errorf("exit: %v, want code 0", err)
	}
	t.Logf("stopped in %s", time.Since(begin))
	if running := runningProcesses(t); len(running) > 0 {
		for _, p := range running {
			if strings.Contains(p, s.dir) {
				t.Errorf("still running: %s", p)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.data(), "*-wal")); err != nil || len(left) > 0 {
		t.Errorf("the database was not closed: %v %v", left, err)
	}
	log, err := os.ReadFile(s.log.Name())
	if err != nil || !strings.Contains(string(log), "stopped") {
		t.Errorf("the log does not end with the stop: %v", err)
	}
	s.start(t) // what the hanging sink has not confirmed is still there
	until(t, func() string {
		var sink struct {
			Delivery struct {
				InFlight int `json:"in_flight"`
			}
		}
		if s.get(t, "/api/plugins/write/", &sink); sink.Delivery.InFlight == 0 {
			return "the batch is not delivered again"
		}
		return ""
	})
}

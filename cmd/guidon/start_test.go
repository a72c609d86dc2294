package main_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

// The commands that the first run prints work when pasted into a shell.
func TestFirstRunPrintsWorkingCommands(t *testing.T) {
	needCommand(t, "curl", "curl")
	t.Parallel()
	s := newServer(t)
	s.start(t)
	output, err := os.ReadFile(s.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, command := range curlCommands(string(output)) {
		ran++
		out, err := shell(s.dir, command)
		if err != nil || strings.Contains(out, `"type"`) {
			t.Errorf("%s\nanswered %s (%v)", command, out, err)
		}
	}
	if ran != 3 {
		t.Fatalf("the first run printed %d curl lines, want 3:\n%s", ran, output)
	}
	if code, err := s.post("/decide?v=3", `{"api_key":"`+s.project+`","distinct_id":"ada"}`); code != http.StatusOK || err != nil {
		t.Errorf("decide: %d %v", code, err)
	}
}

func TestSecondRunKeepsDataAndPrintsNoKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	if code, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"kept","distinct_id":"u"}`); code != http.StatusOK || err != nil {
		t.Fatalf("capture: %d %v", code, err)
	}
	if err := s.stop(t); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if left := runningProcesses(t); anyContains(left, s.dir) {
		t.Errorf("processes outlive a graceful stop: %q", left)
	}
	before, _ := os.ReadFile(s.log.Name())
	s.start(t)
	after, _ := os.ReadFile(s.log.Name())
	if strings.Contains(string(after[len(before):]), s.personal) {
		t.Error("the second run printed the personal key again")
	}
	until(t, func() string {
		var page struct {
			Results []struct{ Event string }
		}
		s.get(t, "/api/projects/1/events/?event=kept", &page)
		if len(page.Results) != 1 {
			return "the event of the first run is not there"
		}
		return ""
	})
}

func TestStopFinishesRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	done := make(chan int, 64)
	for range 64 {
		go func() {
			code, _ := s.post("/capture/", `{"api_key":"`+s.project+`","event":"late","distinct_id":"u"}`)
			done <- code
		}()
	}
	first := <-done
	if err := s.stop(t); err != nil {
		t.Fatalf("stop: %v", err)
	}
	acked := 0
	for _, code := range append(drain(done, 63), first) {
		if code == http.StatusOK {
			acked++
		}
	}
	s.start(t)
	until(t, func() string {
		var page struct {
			Results []struct{ Event string }
		}
		s.get(t, "/api/projects/1/events/?event=late&limit=100", &page)
		if len(page.Results) < acked {
			return "an acknowledged event is missing after a graceful stop"
		}
		return ""
	})
}

func TestServeStartupErrors(t *testing.T) {
	t.Parallel()
	t.Run("an unknown key names the nearest known one", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		write(t, s.config(), "http:\n  adress: 127.0.0.1:1\n")
		out, err := s.guidon("serve")
		if err == nil || !strings.Contains(out, "http.adress") || !strings.Contains(out, "http.address") {
			t.Errorf("got %q (%v)", out, err)
		}
	})
	t.Run("an unknown name in the environment", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		out, err := shell(s.dir, "GUIDON_HTTP_ADRESS=x "+bin+" serve")
		if err == nil || !strings.Contains(out, "GUIDON_HTTP_ADDRESS") {
			t.Errorf("got %q (%v)", out, err)
		}
	})
	t.Run("a port that is taken", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		s.start(t)
		other := newServer(t)
		other.address = s.address
		out, err := other.guidon("serve")
		if err == nil || !strings.Contains(out, s.address) {
			t.Errorf("got %q (%v)", out, err)
		}
	})
	t.Run("a directory that another server holds", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		s.start(t)
		s2 := *s
		s2.address, s2.admin = "127.0.0.1:0", "127.0.0.1:0"
		out, err := s2.guidon("serve")
		if err == nil || !strings.Contains(out, "journal") {
			t.Errorf("got %q (%v)", out, err)
		}
	})
}

func TestServerStartsWithBadPlugins(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	write(t, s.config(), `plugins:
  instances:
    - name: missing
      kind: sink
      use: no-such-plugin
    - name: misconfigured
      kind: sink
      use: file
      config: {paht: x}
    - name: forged
      kind: sink
      use: `+bin+`
      sha256: `+strings.Repeat("ab", 32)+`
    - name: lines
      kind: sink
      use: file
      config: {path: `+s.lines+`}
`)
	s.start(t)
	until(t, func() string {
		var page struct {
			Results []struct{ Name, State string }
		}
		s.get(t, "/api/plugins", &page)
		states := map[string]string{}
		for _, p := range page.Results {
			states[p.Name] = p.State
		}
		if states["lines"] != "ready" || states["missing"] == "ready" || states["misconfigured"] != "misconfigured" || states["forged"] != "untrusted" {
			return fmt.Sprint("states: ", states)
		}
		return ""
	})
}

func TestFileSinkSurvivesKills(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	acked := map[string]bool{}
	for round := range 2 {
		for n := range 50 {
			ids, path, body := captureRequest(s.project, round, n)
			if code, err := s.post(path, body); err != nil || code != http.StatusOK {
				t.Fatalf("%d %v", code, err)
			}
			for _, id := range ids {
				acked[id] = true
			}
			if n == 25 {
				killPlugin(t, s)
			}
		}
	}
	until(t, func() string { return missingEvents(acked, sinkEvents(t, s), "the file sink") })
}

func killPlugin(t *testing.T, s *server) {
	t.Helper()
	until(t, func() string {
		var page struct {
			Results []struct {
				State string
				PID   int
			}
		}
		s.get(t, "/api/plugins", &page)
		if len(page.Results) != 1 || page.Results[0].PID == 0 {
			return "no running plugin"
		}
		if err := syscall.Kill(page.Results[0].PID, syscall.SIGKILL); err != nil {
			return err.Error()
		}
		return ""
	})
}

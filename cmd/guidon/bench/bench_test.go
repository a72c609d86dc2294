package bench

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

func commandFor(url string) Command {
	return Command{Path: "capture", URL: url, Key: "phc_x", Connections: 2, Duration: time.Second, Events: 3, Persons: 10, Budget: Budget{Errors: -1}}
}

// TestOpenLoopCountsWaiting tests that a server that stalls is charged for the requests
// that were due meanwhile, and not only for those that it received.
func TestOpenLoopCountsWaiting(t *testing.T) {
	var stall sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"step":0`) {
			stall.Do(func() { time.Sleep(600 * time.Millisecond) })
		}
	}))
	defer server.Close()
	c := commandFor(server.URL)
	c.Rate, c.Connections = 200, 1
	r, err := c.measure()
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != 200 || r.Failed != 0 {
		t.Errorf("%d requests, %d failed; want 200 and 0", r.Requests, r.Failed)
	}
	if r.P90 < 100 {
		t.Errorf("p90 is %s, although about half of the requests were due during a stall of 600 ms", r.P90)
	}
}

// TestFailuresAreCountedByCause tests refusals and closed connections.
func TestFailuresAreCountedByCause(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) % 3 {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	c := commandFor(server.URL)
	c.Duration = 200 * time.Millisecond
	r, err := c.measure()
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests == 0 || r.Errors["status 503"] == 0 || r.Errors["connection closed"]+r.Errors["connection failed"] == 0 {
		t.Errorf("%+v", r)
	}
}

func TestUnusableServers(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refusing.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, want := range map[string]string{refusing.URL: "status 401", gone.URL: "no server answers", "ftp://x": "not an http or https URL"} {
		_, err := commandFor(url).measure()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
		if _, unreachable := errors.AsType[*remote.UnreachableError](err); unreachable != (url == gone.URL) {
			t.Errorf("%s: %T", url, err)
		}
	}
}

func TestBudget(t *testing.T) {
	r := &Result{P50: 2, P99: 30, P999: 40, Failed: 1, CPUPerRequest: 90, Memory: 200 << 20}
	for _, c := range []struct {
		budget Budget
		memory int64
		over   []string
	}{
		{Budget{Errors: -1}, 0, nil},
		{Budget{Errors: 1, P99: 30 * time.Millisecond, CPU: 90 * time.Microsecond}, 200 << 20, nil},
		{Budget{Errors: 0}, 0, []string{"1 requests failed, over 0"}},
		{Budget{Errors: -1, P50: time.Millisecond, P99: 29 * time.Millisecond, P999: 39 * time.Millisecond}, 0, []string{"p50 is 2 ms, over 1 ms", "p99 is 30 ms", "p99.9 is 40 ms"}},
		{Budget{Errors: -1, CPU: 89 * time.Microsecond}, 1, []string{"CPU of a request is 90.0 µs, over 89µs", "resident memory"}},
	} {
		err := c.budget.compare(r, c.memory)
		if (err != nil) != (c.over != nil) {
			t.Errorf("%+v: %v", c.budget, err)
		}
		for _, want := range c.over {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", c.budget, err, want)
			}
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, change := range map[string]func(*Command){
		"--rate":        func(c *Command) { c.Rate = -1 },
		"--connections": func(c *Command) { c.Connections = 0 },
		"--duration":    func(c *Command) { c.Duration = 0 },
		"--events":      func(c *Command) { c.Events = 0 },
		"--persons":     func(c *Command) { c.Persons = 0 },
		"--pid":         func(c *Command) { c.Budget.CPU = 1 },
		"--memory":      func(c *Command) { c.PID, c.Budget.Memory = 1, "many" },
	} {
		c := commandFor("http://x")
		change(&c)
		if _, err := c.check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUsageOfAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	u, err := usageOf(os.Getpid())
	if err != nil || u.resident == 0 || u.residentMax < u.resident/2 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := usageOf(1 << 30); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that does not exist: %v", err)
	}
}

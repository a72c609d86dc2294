package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// maxResident is the promise of docs/operators.md about the memory of the server.
const maxResident = 512 << 20

// hostilePaths are the public paths and some of the management API.
var hostilePaths = []string{
	"/capture/", "/decide/", "/batch/", "/flags/", "/e/", "/i/v0/e/", "/track/", "/engage/", "/i/v1/analytics/events",
	"/api/projects/1/feature_flags/", "/api/projects/1/cohorts/", "/api/users/@me/", "/none/",
}

// TestHostileRequests sends requests that are small on the wire and huge inside,
// alone and 64 at once, beside uploads that stall. Each gets an answer, honest
// clients get 200 meanwhile, the server stays below 512 MB and returns the memory.
// HOSTILE_REQUESTS sets the number of requests (make hostile: 100000).
func TestHostileRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("sends a hundred large requests")
	}
	requests := 64
	if n, err := strconv.Atoi(os.Getenv("HOSTILE_REQUESTS")); err == nil {
		requests = n
	}
	s := newServer(t)
	s.start(t)
	a := &attack{server: s, bombs: bombs(s.project, s.personal), answers: map[int]int{}}
	a.client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	honest := startHonest(t, s)
	begin := time.Now()
	for i := range a.bombs {
		a.send(t, i, i) // alone
	}
	t.Logf("%d requests alone: %v", len(a.bombs), time.Since(begin).Round(time.Millisecond))
	stalled := a.stall(t, 64)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for n := int(next.Add(1)); n <= requests && !t.Failed(); n = int(next.Add(1)) {
				a.send(t, n, n/len(a.bombs)+n)
			}
		})
	}
	wg.Wait()
	t.Logf("all: %v", time.Since(begin).Round(time.Millisecond))
	for _, c := range stalled {
		c.Close()
	}
	honest.stop(t)
	peak := s.memory(t, "VmHWM")
	t.Logf("answers %v, peak memory %d MB", a.answers, peak>>20)
	if peak > maxResident {
		t.Errorf("the server used %d MB", peak>>20)
	}
	until(t, func() string {
		if now := s.memory(t, "VmRSS"); now > maxResident/2 {
			return fmt.Sprintf("the server keeps %d MB", now>>20)
		}
		return ""
	})
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// attack sends bombs.
type attack struct {
	server  *server
	bombs   []bomb
	client  *http.Client
	mu      sync.Mutex
	answers map[int]int
}

// allowed are the statuses of a request that the server rejects; a few bombs with a
// valid key hold an event, too.
var allowed = []int{200, 400, 401, 404, 405, 408, 413, 415, 429, 503}

// send sends a bomb to a path and checks that there is an answer.
func (a *attack) send(t *testing.T, n, at int) {
	what := fmt.Sprint(a.bombs[n%len(a.bombs)].name, " at ", hostilePaths[at%len(hostilePaths)])
	res, err := a.post(n, at)
	if err != nil {
		if !strings.Contains(err.Error(), "connection reset") && !strings.Contains(err.Error(), "broken pipe") && !strings.Contains(err.Error(), "EOF") {
			t.Errorf("%s: %v", what, err)
		}
		return // rejected before its last byte
	}
	a.mu.Lock()
	a.answers[res.StatusCode]++
	a.mu.Unlock()
	if !slices.Contains(allowed, res.StatusCode) || (res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "") {
		t.Errorf("%s: %d", what, res.StatusCode)
	}
}

// post sends a bomb to a path.
func (a *attack) post(n, at int) (*http.Response, error) {
	b, path := a.bombs[n%len(a.bombs)], hostilePaths[at%len(hostilePaths)]
	req, err := http.NewRequest(http.MethodPost, a.server.url+path+b.query, bytes.NewReader(b.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", b.kind)
	if b.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	if b.auth {
		req.Header.Set("Authorization", "Bearer "+a.server.personal)
	}
	if n%5 == 4 {
		req.ContentLength = -1 // chunked
	}
	res, err := a.client.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	return res, err
}

// stall opens uploads of 20 MB that stop after their first 200 KB.
func (a *attack) stall(t *testing.T, n int) []net.Conn {
	var out []net.Conn
	for i := range n {
		c, err := net.Dial("tcp", a.server.address)
		if err != nil {
			t.Fatal(err)
		}
		path := hostilePaths[i%len(hostilePaths)]
		_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n", path)
		_, _ = c.Write(bytes.Repeat([]byte{'['}, 200<<10))
		out = append(out, c)
	}
	return out
}

// honestClients send events and evaluate flags until stop.
type honestClients struct {
	done   chan struct{}
	wg     sync.WaitGroup
	sent   atomic.Int64
	failed sync.Map
}

// honestRequests are the path and body of the requests of honest clients.
func honestRequests(s *server) [][2]string {
	return [][2]string{
		{"/e/", `{"api_key":"` + s.project + `","event":"honest","distinct_id":"u"}`},
		{"/flags/?v=2", `{"token":"` + s.project + `","distinct_id":"u","person_properties":{"plan":"free"}}`},
	}
}

func startHonest(t *testing.T, s *server) *honestClients {
	t.Helper()
	h := &honestClients{done: make(chan struct{})}
	for _, request := range honestRequests(s) {
		h.wg.Go(func() {
			for {
				select {
				case <-h.done:
					return
				case <-time.After(5 * time.Millisecond):
				}
				code, err := s.post(request[0], request[1])
				h.sent.Add(1)
				if err != nil || code != http.StatusOK {
					h.failed.Store(fmt.Sprint(request[0], " ", code, " ", err), true)
				}
			}
		})
	}
	return h
}

func (h *honestClients) stop(t *testing.T) {
	t.Helper()
	close(h.done)
	h.wg.Wait()
	h.failed.Range(func(k, _ any) bool {
		t.Errorf("an honest request failed: %v", k)
		return true
	})
	if h.sent.Load() < 10 {
		t.Errorf("only %d honest requests were answered", h.sent.Load())
	}
}

// memory returns a field of /proc/PID/status in bytes.
func (s *server) memory(t *testing.T, field string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("no %s in /proc", field)
	return 0
}

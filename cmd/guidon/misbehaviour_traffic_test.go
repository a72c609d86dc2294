package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// pluginState is what the tests read of an instance.
type pluginState struct {
	Name, State, Reason, Trouble string
	LastError                    string `json:"last_error"`
	Hint                         string
	PID, Restarts, Generation    int
	Version                      string
	SHA256                       string
}

// plugins returns the instances by name.
func (s *server) plugins(t testing.TB) map[string]pluginState {
	t.Helper()
	var page struct{ Results []pluginState }
	s.get(t, "/api/plugins", &page)
	out := map[string]pluginState{}
	for _, p := range page.Results {
		out[p.Name] = p
	}
	return out
}

// admin reads a path of the admin address.
func (s *server) readAdmin(t testing.TB, path string) []byte {
	t.Helper()
	res, err := http.Get("http://" + s.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// troubles returns the troubles that readiness names, by instance.
func (s *server) troubles(t testing.TB) map[string]string {
	t.Helper()
	var answer struct {
		Plugins struct {
			Trouble []struct{ Name, Trouble string }
		}
	}
	if err := json.Unmarshal(s.readAdmin(t, "/_readiness"), &answer); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, one := range answer.Plugins.Trouble {
		out[one.Name] = one.Trouble
	}
	return out
}

// gauge reads a metric without labels.
func (s *server) gauge(t testing.TB, name string) float64 {
	t.Helper()
	for line := range strings.Lines(string(s.readAdmin(t, "/metrics"))) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// createFlags creates a flag that uses the operator of the matcher, and one that does not.
func (s *storm) createFlags(t testing.TB) {
	t.Helper()
	createFlag(t, s.server, "matched", `{"properties":[{"key":"ip","type":"person","operator":"misbehaving/any","value":"x"}],"rollout_percentage":100}`)
	createFlag(t, s.server, "plain", `{"rollout_percentage":100}`)
}

// createFlag creates a flag with one condition set, when the operators of that are
// known.
func createFlag(t testing.TB, s *server, key, condition string) {
	t.Helper()
	body := fmt.Sprintf(`{"key":%q,"name":%[1]q,"active":true,"filters":{"groups":[%s]}}`, key, condition)
	until(t, func() string {
		req, err := http.NewRequest(http.MethodPost, s.url+"/api/projects/1/feature_flags/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.personal)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusCreated {
			return fmt.Sprintf("flag %s: %d %s", key, res.StatusCode, answer)
		}
		return ""
	})
}

// traffic is clients that send events and evaluate flags until they are stopped.
type traffic struct {
	server      *server
	stopped     chan struct{}
	clients     sync.WaitGroup
	evaluations atomic.Int64

	mu       sync.Mutex
	acked    map[string]sent
	repeated map[string]bool // events whose first request had no answer: the journal may have them twice
	problems []string
}

// sent is an acknowledged event: the nth of a client.
type sent struct{ client, n int }

// senders is the number of clients that send events.
const senders = 4

func startTraffic(t testing.TB, s *server) *traffic {
	l := &traffic{server: s, stopped: make(chan struct{}), acked: map[string]sent{}, repeated: map[string]bool{}}
	for client := range senders {
		l.clients.Go(func() { l.sendEvents(client) })
	}
	l.clients.Go(l.evaluateFlags)
	t.Cleanup(l.stop)
	return l
}

// stop ends the clients.
func (l *traffic) stop() {
	l.mu.Lock()
	select {
	case <-l.stopped:
	default:
		close(l.stopped)
	}
	l.mu.Unlock()
	l.clients.Wait()
}

// paused waits between two requests. It reports whether the client goes on.
func (l *traffic) paused(d time.Duration) bool {
	select {
	case <-l.stopped:
		return false
	case <-time.After(d):
		return true
	}
}

func (l *traffic) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// sendEvents sends events one by one. It repeats a request without an answer, as a
// client does while the server restarts.
func (l *traffic) sendEvents(client int) {
	for n := 0; l.paused(20 * time.Millisecond); n++ {
		name := "load"
		if n%100 == 50 {
			name = "poison"
		}
		id := uuid.NewString()
		body := fmt.Sprintf(`{"api_key":%q,"event":%q,"uuid":%q,"distinct_id":"client-%d","properties":{"client":%[4]d,"n":%d}}`, l.server.project, name, id, client, n)
		for {
			code, err := l.server.post("/capture/", body)
			if err == nil && code == http.StatusOK {
				break
			}
			if err == nil {
				l.fail("capture: %d", code)
			}
			l.mu.Lock()
			l.repeated[id] = true
			l.mu.Unlock()
			if !l.paused(20 * time.Millisecond) {
				return
			}
		}
		l.mu.Lock()
		l.acked[id] = sent{client, n}
		l.mu.Unlock()
	}
}

// evaluateFlags evaluates flags: the answer is always 200 and has the flag that uses no
// plugin.
func (l *traffic) evaluateFlags() {
	client := http.Client{Timeout: 2 * time.Minute}
	for n := 0; l.paused(10 * time.Millisecond); n++ {
		body := fmt.Sprintf(`{"api_key":%q,"distinct_id":"d","person_properties":{"ip":"10.0.%d.%d"}}`, l.server.project, n/250%250, n%250)
		res, err := client.Post(l.server.url+"/decide/?v=3", "application/json", strings.NewReader(body))
		if err != nil {
			l.fail("decide: %v", err)
			continue
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"plain":true`) {
			l.fail("decide: %d %v %s", res.StatusCode, err, answer)
		}
		l.evaluations.Add(1)
	}
}

// check fails for requests that were answered with an error.
func (l *traffic) check(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.problems) > 0 {
		t.Fatalf("%d requests failed, first: %s", len(l.problems), l.problems[0])
	}
}

// checkDelivered checks that the file sink has every acknowledged event once, with its
// content, those of each client in order.
func (l *traffic) checkDelivered(t testing.TB, s *server) {
	t.Helper()
	acked := map[string]bool{}
	for id := range l.acked {
		acked[id] = true
	}
	if len(acked) < 10 || l.evaluations.Load() < 10 {
		t.Fatalf("only %d events and %d evaluations: the test proves nothing", len(acked), l.evaluations.Load())
	}
	until(t, func() string { return missingEvents(acked, sinkEvents(t, s), "the good sink") })
	text, err := os.ReadFile(s.lines)
	if err != nil {
		t.Fatal(err)
	}
	l.checkLines(t, string(text))
}

func (l *traffic) checkLines(t testing.TB, text string) {
	t.Helper()
	seen, last := map[string]bool{}, map[int]int{}
	for line := range strings.Lines(text) {
		var e struct {
			UUID       string
			Properties struct{ Client, N int }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		want, known := l.acked[e.UUID]
		got := sent{e.Properties.Client, e.Properties.N}
		if !known || seen[e.UUID] && l.repeated[e.UUID] {
			continue
		}
		if got != want || seen[e.UUID] {
			t.Errorf("event %s is %+v, sent was %+v, seen before: %t", e.UUID, got, want, seen[e.UUID])
		}
		if before, found := last[got.client]; found && got.n <= before {
			t.Errorf("event %d of client %d is behind event %d", got.n, got.client, before)
		}
		seen[e.UUID], last[got.client] = true, got.n
	}
}

// leftProcesses describes the processes of misbehaving plugins, and those below the server
// that are more than want; "" if there are none.
func (s *storm) leftProcesses(want int) string {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var marked, children []string
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		name := filepath.Base(dir) + " " + string(stat[:min(len(stat), 40)])
		if fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])); s.cmd != nil && fields[1] == strconv.Itoa(s.cmd.Process.Pid) {
			children = append(children, name)
		}
		env, _ := os.ReadFile(dir + "/environ")
		if strings.Contains(string(env), s.mark()+"\x00") && !strings.Contains(string(env), "MODE=honest\x00") {
			marked = append(marked, name)
		}
	}
	if len(marked) > 0 || len(children) > want {
		return fmt.Sprintf("of misbehaving plugins: %q, children of the server: %q", marked, children)
	}
	return ""
}

// peakMemory returns the most memory that a process has used.
func peakMemory(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

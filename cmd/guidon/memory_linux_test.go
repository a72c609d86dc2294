package main_test

import (
	"bytes"
	"fmt"
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

// TestMemoryLimit loads a server that the kernel kills above a limit of memory: bursts of
// large batches, decisions, and searches of all persons. With a sufficient limit it is
// not killed; with a limit that is too small it is killed and started again. In both
// nothing acknowledged is lost. MEMORY_SECONDS is how long each takes (make memory: 10).
// Where no control group can be made the test itself kills the server above the limit.
func TestMemoryLimit(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("MEMORY_SECONDS"))
	if err != nil {
		t.Skip("MEMORY_SECONDS is not set")
	}
	for _, c := range []struct {
		megabytes int
		survives  bool
	}{{384, true}, {100, false}} {
		t.Run(fmt.Sprintf("%d MB", c.megabytes), func(t *testing.T) {
			s := newServer(t)
			s.group = memoryGroup(t, c.megabytes)
			r := underMemoryLimit(t, s, time.Duration(seconds)*time.Second, int64(c.megabytes)<<20)
			t.Logf("%d kills, %d events acknowledged, answers %v, peak %s bytes", r.kills, len(r.acked), r.answers, peak(s.group))
			if c.survives && r.kills > 0 {
				t.Errorf("the kernel killed the server %d times", r.kills)
			}
			if len(r.acked) == 0 {
				t.Fatal("no event was acknowledged: the test proves nothing")
			}
			s.kill()
			s.group = ""
			s.start(t)
			limit := patience + time.Duration(len(r.acked))*300*time.Microsecond
			untilWithin(t, limit, func() string { return missingEvents(r.acked, storedEvents(t, s), "the event store") })
			untilWithin(t, limit, func() string { return missingEvents(r.acked, sinkEvents(t, s), "the file sink") })
			for id, times := range storedEvents(t, s) {
				if times != 1 {
					t.Errorf("event %s is in the event store %d times", id, times)
				}
			}
		})
	}
}

// memoryGroup makes a control group with a limit of memory, of version 2 or 1. It returns
// nothing where it may not.
func memoryGroup(t *testing.T, megabytes int) string {
	t.Helper()
	limit := strconv.Itoa(megabytes << 20)
	for _, v := range [][2]string{{"/sys/fs/cgroup", "memory.max"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}} {
		group := filepath.Join(v[0], "guidon-test-"+uuid.NewString())
		if _, err := os.Stat(filepath.Join(v[0], "cgroup.procs")); err != nil || os.Mkdir(group, 0o755) != nil {
			continue // not the root of a hierarchy, or not writable
		}
		t.Cleanup(func() { until(t, func() string { return text(os.Remove(group)) }) })
		if f, err := os.OpenFile(filepath.Join(group, v[1]), os.O_WRONLY, 0); err == nil {
			_, err = f.WriteString(limit)
			if f.Close() == nil && err == nil {
				return group
			}
		}
	}
	t.Log("no control group can be made here: the test looks at the memory itself")
	t.Setenv("GOMEMLIMIT", strconv.Itoa(megabytes<<20*3/4)) // as the server would set it
	return ""
}

// memoryOf returns the resident bytes of a process and its children that the kernel could
// not take back, which are those of no file; 0 if it has ended.
func memoryOf(pid int) (bytes int64) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if fields := strings.Fields(string(raw)); len(fields) > 2 {
		resident, _ := strconv.ParseInt(fields[1], 10, 64)
		shared, _ := strconv.ParseInt(fields[2], 10, 64)
		bytes = (resident - shared) * int64(os.Getpagesize())
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(raw)) {
			id, _ := strconv.Atoi(child)
			bytes += memoryOf(id)
		}
	}
	return bytes
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// peak is the most memory that a group has had.
func peak(group string) string {
	for _, name := range []string{"memory.peak", "memory.max_usage_in_bytes"} {
		if b, err := os.ReadFile(filepath.Join(group, name)); err == nil {
			return string(bytes.TrimSpace(b))
		}
	}
	return "unknown"
}

// memoryResult is the outcome of a load under a limit of memory.
type memoryResult struct {
	mu      sync.Mutex
	acked   map[string]bool
	answers map[int]int // by status; 0 is none
	kills   int
}

// underMemoryLimit loads the server for a time and starts it again when it is killed. A
// server without a control group it kills above limit bytes.
func underMemoryLimit(t *testing.T, s *server, d time.Duration, limit int64) *memoryResult {
	r := &memoryResult{acked: map[string]bool{}, answers: map[int]int{}}
	s.start(t)
	// A server that ends while it starts, for the load does not pause, is launched again.
	s.whileStarting = func() {
		if s.endedAbove(limit) {
			s.kill()
			r.kills++
			s.launch(t)
		}
	}
	defer func() { s.whileStarting = nil }()
	var wg sync.WaitGroup
	var over atomic.Bool
	for w := range 16 {
		wg.Go(func() {
			for n := 0; !over.Load(); n++ {
				r.send(s, w, n)
			}
		})
	}
	wg.Go(func() {
		for !over.Load() {
			search(s)
		}
	})
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		if s.endedAbove(limit) {
			s.kill()
			r.kills++
			s.start(t)
		}
	}
	over.Store(true)
	wg.Wait()
	return r
}

// endedAbove reports whether the process has ended. A server without a control group
// whose memory is above limit bytes it kills first.
func (s *server) endedAbove(limit int64) bool {
	if s.group == "" && memoryOf(s.cmd.Process.Pid) > limit {
		_ = s.cmd.Process.Kill()
	}
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	return err != nil || strings.Contains(string(state), ") Z ")
}

// send sends a batch of about 2 MB; every fourth request is a decision instead.
func (r *memoryResult) send(s *server, worker, n int) {
	var ids []string
	body, path := `{"token":"`+s.project+`","distinct_id":"u1"}`, "/decide/?v=3"
	if n%4 < 3 {
		path = "/batch/"
		var b strings.Builder
		b.WriteString(`{"api_key":"` + s.project + `","batch":[`)
		for i := range 1000 {
			if i > 0 {
				b.WriteByte(',')
			}
			id := uuid.NewString()
			ids = append(ids, id)
			fmt.Fprintf(&b, `{"event":"load","uuid":%q,"distinct_id":"u%d","properties":{"filler":%q,"$set":{"n":%d}}}`, id, (worker*1000+i)%5000, strings.Repeat("x", 1800), n)
		}
		b.WriteString("]}")
		body = b.String()
	}
	code, err := s.post(path, body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		code = 0
	}
	r.answers[code]++
	if code == http.StatusOK {
		for _, id := range ids {
			r.acked[id] = true
		}
	} else {
		time.Sleep(10 * time.Millisecond)
	}
}

// search searches all persons and ignores the answer.
func search(s *server) {
	req, err := http.NewRequest(http.MethodGet, s.url+"/api/projects/@current/persons/?search=nowhere", nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+s.personal)
	if res, err := http.DefaultClient.Do(req); err == nil {
		_ = res.Body.Close()
	}
	time.Sleep(20 * time.Millisecond)
}

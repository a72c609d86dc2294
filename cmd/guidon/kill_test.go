package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestKillUnderLoad is the promise "a 200 means the event is on disk" as a
// test: the server is killed with SIGKILL in the middle of the load, again and
// again, and in the end every event that was acknowledged is in the event
// store exactly once and in the file sink at least once. GUIDON_CRASH_ROUNDS
// sets how often (make crash: 20).
func TestKillUnderLoad(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("GUIDON_CRASH_ROUNDS")); err == nil {
		rounds = n
	}
	s := newServer(t)
	acked := map[string]bool{}
	for range rounds {
		s.start(t)
		for _, id := range loadAndKill(s) {
			acked[id] = true
		}
		until(t, 2*time.Second, func() string {
			if left := alive(t); len(left) > 0 {
				return fmt.Sprintf("processes outlive the killed server: %q", left)
			}
			return ""
		})
	}
	if len(acked) < rounds*10 {
		t.Fatalf("only %d events were acknowledged in %d rounds: the test proves nothing", len(acked), rounds)
	}
	s.start(t)
	until(t, 60*time.Second, func() string { return missing(acked, inStore(t, s), "the event store") })
	for id, times := range inStore(t, s) {
		if times != 1 {
			t.Errorf("event %s is in the event store %d times", id, times)
		}
	}
	until(t, 60*time.Second, func() string { return missing(acked, inSink(t, s), "the file sink") })
	t.Logf("%d rounds, %d events acknowledged, none lost", rounds, len(acked))
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// loadAndKill sends single events and batches from several connections, kills
// the server at a random moment, and returns the ids that were acknowledged.
func loadAndKill(s *server) []string {
	var mu sync.Mutex
	var acked []string
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				ids, path, body := request(s.project, w, n)
				if code, err := s.post(path, body); err != nil || code != http.StatusOK {
					if err != nil {
						return
					}
					continue
				}
				mu.Lock()
				acked = append(acked, ids...)
				mu.Unlock()
			}
		})
	}
	time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond)
	s.kill()
	close(stop)
	wg.Wait()
	return acked
}

func request(key string, worker, n int) (ids []string, path, body string) {
	one := func(i int) string {
		id := uuid.NewString()
		ids = append(ids, id)
		return fmt.Sprintf(`{"event":"load","uuid":%q,"properties":{"distinct_id":"w%d","n":%d,"i":%d,"$set":{"last":%d}}}`, id, worker, n, i, n)
	}
	if n%3 != 0 {
		item := one(0)
		return ids, "/capture/", fmt.Sprintf(`{"api_key":%q,%s`, key, item[1:])
	}
	items := make([]string, 10)
	for i := range items {
		items[i] = one(i)
	}
	return ids, "/batch/", fmt.Sprintf(`{"api_key":%q,"batch":[%s]}`, key, strings.Join(items, ","))
}

func missing(acked map[string]bool, there map[string]int, place string) string {
	lost := 0
	for id := range acked {
		if there[id] == 0 {
			lost++
		}
	}
	if lost > 0 {
		return fmt.Sprintf("%d of %d acknowledged events are not in %s", lost, len(acked), place)
	}
	return ""
}

func inStore(t *testing.T, s *server) map[string]int {
	t.Helper()
	out := map[string]int{}
	path := "/api/projects/1/events/?event=load&limit=1000"
	for path != "" {
		var page struct {
			Results []struct {
				UUID string `json:"uuid"`
			} `json:"results"`
			Next string `json:"next"`
		}
		s.get(t, path, &page)
		for _, e := range page.Results {
			out[e.UUID]++
		}
		path = page.Next
	}
	return out
}

// inSink reads what the file sink wrote, in the file it writes now and in those
// it has put aside.
func inSink(t *testing.T, s *server) map[string]int {
	t.Helper()
	files, err := filepath.Glob(strings.TrimSuffix(s.lines, ".ndjson") + "*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue // it was rotated in this moment: the caller looks again
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var e struct {
				UUID string `json:"uuid"`
			}
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				out[e.UUID]++
			}
		}
		f.Close()
	}
	return out
}

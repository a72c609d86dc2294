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

// TestKillUnderLoad tests the promise "a 200 means the event is on disk": each
// round kills the server with SIGKILL under load, and the clients repeat requests
// without an answer. At the end every acknowledged event is in the event store
// exactly once and in the file sink at least once, and every acknowledged merge
// has made one person. GUIDON_CRASH_ROUNDS sets the number of rounds (make crash: 20);
// the second one starts from what a killed server has left.
func TestKillUnderLoad(t *testing.T) {
	rounds := 2
	if n, err := strconv.Atoi(os.Getenv("GUIDON_CRASH_ROUNDS")); err == nil {
		rounds = n
	}
	crashRounds(t, newServer(t), rounds)
}

// crashRounds crashes a server under load in each round and checks that nothing
// acknowledged is lost.
func crashRounds(t *testing.T, s *server, rounds int) {
	t.Helper()
	acked := map[string]bool{}
	var aliases []alias
	for round := range rounds {
		s.start(t)
		ids, merges := loadAndKill(t, s, round)
		for _, id := range ids {
			acked[id] = true
		}
		aliases = append(aliases, merges...)
		until(t, noProcess(t))
	}
	if len(acked) < rounds*10 {
		t.Fatalf("only %d events were acknowledged in %d rounds: the test proves nothing", len(acked), rounds)
	}
	s.start(t)
	limit := patience + time.Duration(len(acked))*200*time.Microsecond
	untilWithin(t, limit, func() string { return missingEvents(acked, storedEvents(t, s), "the event store") })
	for id, times := range storedEvents(t, s) {
		if times != 1 {
			t.Errorf("event %s is in the event store %d times", id, times)
		}
	}
	untilWithin(t, limit, func() string { return missingEvents(acked, sinkEvents(t, s), "the file sink") })
	checkMerged(t, s, aliases)
	t.Logf("%d rounds, %d events and %d merges acknowledged, none lost", rounds, len(acked), len(aliases))
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// noProcess describes the processes of the binary that still run, "" if none.
func noProcess(t *testing.T) func() string {
	return func() string {
		if left := runningProcesses(t); len(left) > 0 {
			return fmt.Sprintf("processes outlive the killed server: %q", left)
		}
		return ""
	}
}

// clients is the number of connections that load the server.
const clients = 8

// minAcked and maxAcked bound the number of requests that a server has acknowledged when
// it is killed. With the least number, a connection has sent its merge.
const minAcked, maxAcked = 60, 200

// loadAndKill sends single events, batches and merges from several connections,
// kills the server after a random number of them, while others have no answer yet,
// starts it again to repeat those, kills it once more, and returns what was acknowledged.
func loadAndKill(t *testing.T, s *server, round int) (ids []string, aliases []alias) {
	t.Helper()
	var mu sync.Mutex
	var acked, unanswered []load
	var wg sync.WaitGroup
	killAfter := minAcked + rand.IntN(maxAcked-minAcked)
	enough, stop := make(chan struct{}), make(chan struct{})
	for w := range clients {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				l := nthLoad(s.project, w, n, round)
				code, err := s.post(l.path, l.body)
				mu.Lock()
				switch {
				case err != nil:
					unanswered = append(unanswered, l)
				case code == http.StatusOK:
					if acked = append(acked, l); len(acked) == killAfter {
						close(enough)
					}
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(time.Until(waitDeadline(t, patience))):
		t.Errorf("the server does not acknowledge %d requests", killAfter)
	}
	s.crash()
	close(stop)
	wg.Wait()
	s.start(t)
	for _, l := range unanswered {
		if code, err := s.post(l.path, l.body); err != nil || code != http.StatusOK {
			t.Fatalf("a repeated request: %d %v", code, err)
		}
		acked = append(acked, l)
	}
	s.crash()
	for _, l := range acked {
		ids = append(ids, l.ids...)
		if l.alias.id != "" {
			aliases = append(aliases, l.alias)
		}
	}
	return ids, aliases
}

// load is one request.
type load struct {
	ids        []string
	alias      alias // set if the request is a merge
	path, body string
}

// nthLoad returns the nth request of a connection: a merge if n is 5, else events.
func nthLoad(key string, worker, n, round int) (l load) {
	if n != 5 {
		l.ids, l.path, l.body = captureRequest(key, worker, n)
		return l
	}
	l.alias, l.path = alias{fmt.Sprintf("w%d-was-%d", worker, round), fmt.Sprintf("w%d", worker)}, "/batch/"
	l.body = fmt.Sprintf(`{"api_key":%q,"batch":[{"event":"seen","distinct_id":%q},{"event":"$merge_dangerously","distinct_id":%q,"properties":{"alias":%[2]q}}]}`,
		key, l.alias.id, l.alias.of)
	return l
}

// captureRequest returns a request with one event, or with ten for each third n,
// and the uuids of its events.
func captureRequest(key string, worker, n int) (ids []string, path, body string) {
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

// alias is a distinct id that was merged into the person of another.
type alias struct{ id, of string }

// checkMerged checks that both distinct ids of each merge belong to one person.
func checkMerged(t *testing.T, s *server, aliases []alias) {
	t.Helper()
	if len(aliases) == 0 {
		t.Error("no merge was acknowledged: the test proves nothing")
	}
	personOf := func(distinctID string) int64 {
		var page struct {
			Results []struct {
				ID int64 `json:"id"`
			} `json:"results"`
		}
		s.get(t, "/api/projects/1/persons/?distinct_id="+distinctID, &page)
		if len(page.Results) != 1 {
			t.Errorf("%s belongs to %d persons", distinctID, len(page.Results))
			return 0
		}
		return page.Results[0].ID
	}
	owners := map[string]int64{}
	for _, a := range aliases {
		if owners[a.of] == 0 {
			owners[a.of] = personOf(a.of)
		}
		if personOf(a.id) != owners[a.of] {
			t.Errorf("%s and %s are not the same person", a.id, a.of)
		}
	}
}

// missingEvents describes the acknowledged events that a place lacks, "" if none.
func missingEvents(acked map[string]bool, found map[string]int, place string) string {
	lost := 0
	for id := range acked {
		if found[id] == 0 {
			lost++
		}
	}
	if lost > 0 {
		return fmt.Sprintf("%d of %d acknowledged events are not in %s", lost, len(acked), place)
	}
	return ""
}

// storedEvents counts the uuids in the event store.
func storedEvents(t *testing.T, s *server) map[string]int {
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

// sinkEvents counts the uuids that the file sink wrote to its current file and to
// its rotated files.
func sinkEvents(t testing.TB, s *server) map[string]int {
	t.Helper()
	files, err := filepath.Glob(strings.TrimSuffix(s.lines, ".ndjson") + "*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue // the sink just rotated the file: the caller polls again
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

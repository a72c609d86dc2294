package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
)

// watcher reads the stream of live events of project 1 from a server, and remembers where
// it was for the next server.
type watcher struct {
	last string // id of the last message
	stop func()

	mu     sync.Mutex
	seen   []seenEvent
	others []string        // messages that are neither events nor the begin of a stream
	ended  chan struct{}   // closed at the end of the stream
	before map[string]bool // uuids of earlier connections
}

type seenEvent struct {
	UUID       string `json:"id"`
	DistinctID string `json:"distinct_id"`
	Properties struct{ N int }
}

// watch opens a stream behind what was seen, and returns when it is ready.
func (w *watcher) watch(t *testing.T, s *server) {
	t.Helper()
	w.before = map[string]bool{}
	for _, e := range w.seen {
		w.before[e.UUID] = true
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/projects/1/events/stream?event=live", nil)
	check(t, err)
	req.Header.Set("Authorization", "Bearer "+s.PersonalKey)
	req.Header.Set("Accept", "text/event-stream")
	if w.last != "" {
		req.Header.Set("Last-Event-ID", w.last)
	}
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("stream: %s", res.Status)
	}
	ready := make(chan struct{})
	w.ended = make(chan struct{})
	w.stop = func() { cancel(); <-w.ended }
	t.Cleanup(w.stop)
	go func() {
		defer close(w.ended)
		defer func() { _ = res.Body.Close() }()
		w.read(t, bufio.NewScanner(res.Body), ready)
	}()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the stream is not ready")
	}
}

// read reads messages until the connection ends.
func (w *watcher) read(t *testing.T, lines *bufio.Scanner, ready chan struct{}) {
	lines.Buffer(nil, 1<<20)
	name, id, data := "", "", ""
	for lines.Scan() {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if line != "" || name == "" {
				continue // a comment, or the end of retry
			}
			w.add(t, name, id, data)
			if name == "ready" {
				close(ready)
			}
			name, id, data = "", "", ""
		}
	}
}

func (w *watcher) add(t *testing.T, name, id, data string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id != "" {
		w.last = id
	}
	switch name {
	case "ready":
	case "event":
		var e seenEvent
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.UUID == "" {
			t.Errorf("event %s: %v", data, err)
		}
		if w.before[e.UUID] {
			return // Postgres: rows before the position are sent again
		}
		w.seen = append(w.seen, e)
	default:
		w.others = append(w.others, name+" "+data)
	}
}

func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// check checks that each event was seen once, and the events of each person in the order
// of their numbers.
func (w *watcher) check(t *testing.T, want int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ids := map[string]int{}, map[string]bool{}
	for i, e := range w.seen {
		if ids[e.UUID] {
			t.Errorf("event %d, %+v, was seen before", i, e)
		}
		ids[e.UUID] = true
		if n, seen := last[e.DistinctID]; seen && e.Properties.N <= n {
			t.Errorf("event %d of %s is behind %d", e.Properties.N, e.DistinctID, n)
		}
		last[e.DistinctID] = e.Properties.N
	}
	if len(ids) != want || len(w.others) > 0 {
		t.Errorf("%d events were seen, want %d; other messages %q", len(ids), want, w.others)
	}
}

// sendLive sends rounds of events of persons through the servers in turn: the events of a
// person have ascending numbers.
func sendLive(t *testing.T, nodes []*server, from, rounds int) (events int) {
	t.Helper()
	for i := range rounds {
		var items []string
		for p := range 12 {
			items = append(items, fmt.Sprintf(`{"event":"live","distinct_id":"p%d","properties":{"N":%d}},{"event":"other","distinct_id":"p%d"}`, p, from+i, p))
		}
		nodes[i%len(nodes)].capture(t, strings.Join(items, ","))
		events += 12
	}
	return events
}

// A viewer of one of two servers on a log sees what either accepts: each event once, those
// of a person in order. After its server has gone it continues at the other one where it
// was.
func TestLiveEventsOfTwoServers(t *testing.T) {
	t.Parallel()
	nodes := serveNodes(t, 2, onLog("postgres"))
	liveOnNodes(t, nodes)
}

func liveOnNodes(t *testing.T, nodes []*server) {
	var w watcher
	w.watch(t, nodes[0])
	want := sendLive(t, nodes[1:], 0, 20) // all through another node
	nodes[0].until(t, "events that the other node accepted", func() bool { return w.count() >= want })
	want += sendLive(t, nodes, 20, 20)
	nodes[0].until(t, "events of both nodes", func() bool { return w.count() >= want })
	w.stop()
	want += sendLive(t, nodes, 40, 20) // without a viewer: 240 events
	w.watch(t, nodes[1])
	want += sendLive(t, nodes, 60, 20)
	nodes[1].until(t, "what was missed, and what came then", func() bool { return w.count() >= want })
	check(t, nodes[0].Stop()) // its partitions move
	want += sendLive(t, nodes[1:], 80, 20)
	nodes[1].until(t, "events after the end of a node", func() bool { return w.count() >= want })
	w.check(t, want)
}

// The same on one server with one database, the reader of which is the cheaper one.
func TestLiveEventsOfOneServer(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *app.Config) { c.Plugins.Instances = nil })
	var w watcher
	w.watch(t, s)
	want := sendLive(t, []*server{s}, 0, 20)
	s.until(t, "events", func() bool { return w.count() >= want })
	w.stop()
	want += sendLive(t, []*server{s}, 20, 20)
	w.watch(t, s)
	want += sendLive(t, []*server{s}, 40, 20)
	s.until(t, "what was missed", func() bool { return w.count() >= want })
	w.check(t, want)
}

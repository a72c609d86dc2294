//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// picky is an endpoint of the webhook sink that refuses batches with events that have
// properties.bad, until it is repaired. It keeps the others. While it holds, it answers no
// batch.
type picky struct {
	*httptest.Server
	repaired atomic.Bool
	mu       sync.Mutex
	held     chan struct{} // closed when it answers again; nil: it does
	has      []event
}

func newPicky(t *testing.T) *picky {
	p := &picky{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	t.Cleanup(p.release) // Close waits for the requests that it has
	return p
}

// ServeHTTP takes a batch; POST /repair, /hold and /release change what it does, GET /has
// lists the events.
func (p *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/repair":
		p.repaired.Store(true)
	case "/hold":
		p.hold()
	case "/release":
		p.release()
	case "/has":
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = json.NewEncoder(w).Encode(p.has)
	default:
		var batch struct{ Data []event }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &batch); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, e := range batch.Data {
			if e.Properties["bad"] != nil && !p.repaired.Load() {
				http.Error(w, "bad is not allowed here "+hostile, http.StatusUnprocessableEntity)
				return
			}
		}
		if p.wait(r.Context()) {
			p.mu.Lock()
			p.has = append(p.has, batch.Data...)
			p.mu.Unlock()
		}
	}
}

func (p *picky) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = make(chan struct{})
	}
}

func (p *picky) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

// wait returns true when the endpoint answers, and false if the sink has given up before.
func (p *picky) wait(ctx context.Context) bool {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held == nil {
		return true
	}
	select {
	case <-held:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// TestConsoleDeadLetters works with the page of dead letters in Chromium: the empty page,
// filters, one letter that is corrected and replayed, one that fails again, one that is
// deleted, and many that are replayed and deleted with progress. A real sink refuses the events.
func TestConsoleDeadLetters(t *testing.T) { onDatabases(t, testConsoleDeadLetters) }

func testConsoleDeadLetters(t *testing.T, database []string) {
	p := newPicky(t)
	s := startWith(t, fmt.Sprintf("    - name: posted\n      kind: sink\n      use: webhook\n      config: {url: %q, allow_networks: [127.0.0.0/8]}\n", p.URL+"/in"), database...)
	var events []map[string]any
	for i := range 60 {
		events = append(events, map[string]any{"event": "imported", "distinct_id": fmt.Sprintf("person-%02d", i), "properties": map[string]any{"bad": true, "n": i}})
	}
	events = append(events,
		map[string]any{"event": hostile, "distinct_id": hostile, "properties": map[string]any{"bad": hostile, hostile: hostile}},
		map[string]any{"event": "large", "distinct_id": "ada", "properties": map[string]any{"bad": true, "n": json.RawMessage("9007199254740993")}},
		map[string]any{"event": "stubborn", "distinct_id": "ada", "properties": map[string]any{"bad": true}},
		map[string]any{"event": "unwanted", "distinct_id": "ada", "properties": map[string]any{"bad": true}},
		map[string]any{"event": "paid", "distinct_id": "ada", "properties": map[string]any{"bad": true, "amount": 20}},
	)
	inBrowser(t, s, "deadletters-empty.mjs", nil)
	s.send(t, events...)
	eventually(t, 2*time.Minute, "the sink has refused all", func() error {
		var page struct{ Count int }
		s.do(t, http.MethodGet, "/api/projects/1/dead_letters/", nil, &page, http.StatusOK)
		if page.Count != len(events) {
			return fmt.Errorf("%d dead letters", page.Count)
		}
		return nil
	})
	inBrowser(t, s, "deadletters.mjs", map[string]any{"sink": p.URL})
}

//go:build e2e

package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// What an interaction may take in scripts, in milliseconds of CPU, and what a page may hold, in
// bytes, with 5,000 flags, a million persons and 500 events a second.
const (
	scriptLimit = 100
	heapLimit   = 150_000_000
)

// visited is what scale.mjs measured: the interaction of a page with the most CPU time in
// scripts, its time in scripts by the clock and of CPU, and the CPU time of all tasks of the
// main thread; the longest layout, and the memory of scripts at the end.
type visited struct {
	Page, Slowest              string
	Script, ScriptCPU, TaskCPU float64
	Layout, Heap               float64
}

// TestConsoleScale opens the pages of a large project in Chromium while events arrive, and
// compares the script time of interactions and the heap with their limits. make
// bench-console runs it.
//
//	SCALE_PERSONS   persons of the project; without it the test does nothing
//	SCALE_FLAGS     flags (5000)
//	SCALE_EVENTS    events a second while the pages are open (500)
func TestConsoleScale(t *testing.T) {
	persons := int(chaosSetting(t, "SCALE_PERSONS"))
	if persons == 0 {
		t.Skip("SCALE_PERSONS is not set")
	}
	flags, rate := cmp.Or(int(chaosSetting(t, "SCALE_FLAGS")), 5_000), cmp.Or(int(chaosSetting(t, "SCALE_EVENTS")), 500)
	s := start(t)
	s.fill(t, persons, flags)
	ctx, cancel := context.WithCancel(t.Context())
	var feeding sync.WaitGroup
	feeding.Go(func() { s.feed(ctx, t, rate) })
	defer feeding.Wait()
	defer cancel()
	got := inBrowser(t, s, "scale.mjs", nil)
	t.Logf("%d persons, %d flags, %d events/s\n| page | slowest interaction | script ms of CPU | script ms | all tasks ms of CPU | layout ms | heap MB |\n|---|---|---|---|---|---|---|", persons, flags, rate)
	for _, v := range got.Pages {
		fmt.Printf("| %s | %s | %.0f | %.0f | %.0f | %.0f | %.1f |\n", v.Page, v.Slowest, v.ScriptCPU, v.Script, v.TaskCPU, v.Layout, v.Heap/1e6)
		if v.ScriptCPU > scriptLimit || v.Heap > heapLimit {
			t.Errorf("%s: %.0f ms of CPU in scripts, %.0f MB; the limits are %d ms and %d MB", v.Page, v.ScriptCPU, v.Heap/1e6, scriptLimit, heapLimit/1_000_000)
		}
	}
}

// fill makes flags and persons, as clients do.
func (s *server) fill(t *testing.T, persons, flags int) {
	t.Helper()
	begin := time.Now()
	var g errgroup.Group
	g.SetLimit(4)
	for i := range flags {
		g.Go(func() error {
			body := fmt.Sprintf(`{"key": "flag-%04d", "name": "Feature %d of the shop", "tags": ["team-%d"], "filters": {"groups": [{"properties": [{"key": "plan", "type": "person", "operator": "exact", "value": ["plan-%d"]}], "rollout_percentage": %d}]}}`, i, i, i%20, i%5, i%101)
			return s.write(t.Context(), "/api/projects/1/feature_flags/", []byte(body))
		})
	}
	const size = 1_000
	for from := 0; from < persons; from += size {
		g.Go(func() error { return s.write(t.Context(), "/batch/", s.people(from, min(size, persons-from))) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Minute, "the last person is stored", func() error {
		var found struct{ Results []any }
		s.do(t, http.MethodGet, fmt.Sprintf("/api/projects/1/persons/?distinct_id=person-%d", persons-1), nil, &found, http.StatusOK)
		if len(found.Results) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	t.Logf("%d persons and %d flags made in %s", persons, flags, time.Since(begin).Round(time.Second))
}

// people returns a batch with an event for each of count persons.
func (s *server) people(from, count int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"api_key": %q, "batch": [`, s.project)
	for i := range count {
		if i > 0 {
			b.WriteByte(',')
		}
		n := from + i
		fmt.Fprintf(&b, `{"event": "signed up", "distinct_id": "person-%d", "properties": {"$set": {"email": "person-%d@example.com", "plan": "plan-%d", "name": "Person %d"}}}`, n, n, n%5, n)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// feed sends events at a rate a second until the context ends, ten times a second.
func (s *server) feed(ctx context.Context, t *testing.T, rate int) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		events := make([]map[string]any, rate/10)
		for i := range events {
			n++
			events[i] = map[string]any{"event": fmt.Sprint("event ", n%30), "distinct_id": fmt.Sprint("person-", n%5_000), "properties": map[string]any{
				"$current_url": fmt.Sprint("https://shop.example.com/products/", n%1_000), "$feature_flag": fmt.Sprintf("flag-%04d", n%50), "amount": n % 77}}
		}
		body, err := json.Marshal(map[string]any{"api_key": s.project, "batch": events})
		if err != nil {
			t.Error(err)
			return
		}
		if err := s.write(ctx, "/batch/", body); err != nil && ctx.Err() == nil {
			t.Errorf("feed: %v", err)
			return
		}
	}
}

// write sends a body with the personal key.
func (s *server) write(ctx context.Context, path string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.personal)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("POST %s: %s", path, res.Status)
	}
	return nil
}

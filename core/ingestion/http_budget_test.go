package ingestion_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/ingestion/capture"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web/webtest"
)

// slow is a journal on a slow disk.
type slow struct {
	memoryJournal
	arrived, pass chan struct{}
}

func (s *slow) Append(ctx context.Context, data []byte) (uint64, error) {
	s.arrived <- struct{}{}
	<-s.pass
	return s.memoryJournal.Append(ctx, data)
}

// Clients that retry while the disk is slow must not exhaust the memory: beyond the
// budget a request gets 503.
func TestMemoryBudgetBoundsARetryStorm(t *testing.T) {
	t.Parallel()
	j := &slow{arrived: make(chan struct{}, 100), pass: make(chan struct{})}
	base := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithBudget(100_000))
	body := `{"api_key":"phc_x","batch":[{"event":"a","distinct_id":"u","properties":{"text":"` + strings.Repeat("x", 20_000) + `"}}]}`
	var wg sync.WaitGroup
	for range 2 { // as many as there is room for
		wg.Go(func() {
			if got := send(t, "POST", base+"/batch/", "application/json", body); got.status != 200 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	<-j.arrived
	<-j.arrived
	for range 20 { // the same again, ten times
		got := send(t, "POST", base+"/batch/", "application/json", body)
		if got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "ingestion_saturated") {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := v1(t, base, strings.Replace(body, `"event"`, `"uuid":"`+id1+`","event"`, 1)); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("the protocol of 2026: %d %s", got.status, got.body)
	}
	close(j.pass)
	wg.Wait()
	if got := send(t, "POST", base+"/batch/", "application/json", body); got.status != 200 {
		t.Errorf("when there is room again: %d %s", got.status, got.body)
	}
	if events, _ := j.events(t); len(events) != 3 {
		t.Errorf("%d events are kept of the 3 that were acknowledged", len(events))
	}
}

// A single request is accepted even if it exceeds the budget.
func TestMemoryBudgetAllowsOneLargeRequest(t *testing.T) {
	t.Parallel()
	j := new(memoryJournal)
	base := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithBudget(10))
	for range 3 {
		if got := send(t, "POST", base+"/e/", "", gzipped(`{"api_key":"phc_x","event":"a","distinct_id":"u"}`)); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// ingestion.max_batch_events bounds the items of a request in every protocol and
// encoding, before anything is stored of them. 0 is no bound.
func TestRequestWithTooManyEventsIsRefused(t *testing.T) {
	t.Parallel()
	const limit = 3
	j := new(memoryJournal)
	base := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithMaxItems(limit))
	batch := func(n int) string {
		item := `{"event":"a","distinct_id":"u","uuid":"` + id1 + `"},`
		return `{"api_key":"phc_x","batch":[` + strings.TrimSuffix(strings.Repeat(item, n), ",") + `]}`
	}
	for name, encode := range map[string]func(string) string{"plain": func(s string) string { return s }, "gzip": gzipped} {
		for _, path := range []string{"/batch/", "/e/", "/capture/"} {
			if got := send(t, "POST", base+path, "", encode(batch(limit+1))); got.status != 413 || !strings.Contains(got.body, `"code":"too_many_events"`) {
				t.Errorf("%s, %s: %d %s", path, name, got.status, got.body)
			}
		}
	}
	if got := v1(t, base, batch(limit+1)); got.status != 413 {
		t.Errorf("the protocol of 2026: %d %s", got.status, got.body)
	}
	if events, _ := j.events(t); len(events) != 0 {
		t.Errorf("%d events of refused requests are stored", len(events))
	}
	if got := send(t, "POST", base+"/batch/", "", batch(limit)); got.status != 200 {
		t.Errorf("as many as allowed: %d %s", got.status, got.body)
	}
	unbounded := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithMaxItems(0))
	if got := send(t, "POST", unbounded+"/batch/", "", batch(1000)); got.status != 200 {
		t.Errorf("without a bound: %d %s", got.status, got.body)
	}
}

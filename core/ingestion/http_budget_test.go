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

package ingestion_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// Each event that capture does not take is counted once, with the reason.
func TestRefusedEventsAreCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m, _ := meter(t, dbtest.SQLite(t), quota(2, capture.PerDay), newClock(time.Now()))
	j := new(memoryJournal)
	base := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(reg), zap.NewNop()).WithMeter(m).WithMaxItems(3))
	batch := func(key string, n int) string {
		item := `{"event":"a","distinct_id":"u","uuid":"` + id1 + `"},`
		return `{"api_key":"` + key + `","batch":[` + strings.TrimSuffix(strings.Repeat(item, n), ",") + `]}`
	}
	post := func(body string, status int) {
		t.Helper()
		if got := send(t, "POST", base+"/batch/", "application/json", body); got.status != status {
			t.Errorf("%.60s: %d %s, want %d", body, got.status, got.body, status)
		}
	}
	post(batch("phc_test", 2), 200)
	post("not JSON", 400)
	post(batch("wrong", 3), 401)
	post(batch("phc_x", 4), 413)
	post(batch("phc_test", 3), 200) // dropped over quota
	if got := v1(t, base, batch("", 2), "Authorization", "Bearer phc_test"); got.status != 402 {
		t.Errorf("the protocol of 2026 over quota: %d %s", got.status, got.body)
	}
	j.mu.Lock()
	j.err = fault.New(fault.Unavailable, "journal_full", "There is no space left.")
	j.mu.Unlock()
	post(batch("phc_x", 2), 503)
	if got := v1(t, base, batch("", 1), "Authorization", "Bearer phc_x"); got.status != 503 {
		t.Errorf("the protocol of 2026 without space: %d %s", got.status, got.body)
	}
	want := map[string]float64{"events_over_quota": 5, "invalid_api_key": 3, "journal_full": 3, "too_many_events": 1, "invalid_payload": 1}
	if got := refusedEvents(t, reg); !maps.Equal(got, want) {
		t.Errorf("refused events %v, want %v", got, want)
	}
}

// refusedEvents returns the values of guidon_ingestion_events_refused_total by reason.
func refusedEvents(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "guidon_ingestion_events_refused_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()] += m.GetCounter().GetValue()
		}
	}
	return out
}

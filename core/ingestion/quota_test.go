package ingestion_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/capture"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// clock is a clock that a test sets.
type clock struct{ at atomic.Int64 }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.set(at)
	return c
}

func (c *clock) set(at time.Time) { c.at.Store(at.UnixNano()) }
func (c *clock) now() time.Time   { return time.Unix(0, c.at.Load()).UTC() }

func quota(events int64, period string) ingestion.Config {
	cfg := ingestion.DefaultConfig()
	cfg.Quota = capture.QuotaConfig{Events: events, Period: period}
	return cfg
}

// meter returns a started meter; stop writes its counts.
func meter(t *testing.T, d *db.DB, cfg ingestion.Config, c *clock) (m *capture.Meter, stop func()) {
	t.Helper()
	m = capture.NewMeter(cfg.Quota, d, capture.NewMetrics(nil), zap.NewNop(), c.now)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			if err := m.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return m, stop
}

func TestEventsOverQuotaAreDropped(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := newClock(time.Date(2026, 3, 31, 23, 0, 0, 0, time.UTC))
		cfg := quota(10, capture.PerMonth)
		cfg.Quota.Projects = map[string]int64{"2": 1, "3": 0}
		m, stop := meter(t, d, cfg, c)
		for _, step := range []struct {
			project int64
			events  int
			want    bool
			why     string
		}{
			{1, 9, true, "below"}, {1, 5, true, "a request is taken whole"}, {1, 1, false, "over"}, {1, 7, false, "still over"},
			{2, 1, true, "a limit of its own"}, {2, 1, false, "reached"}, {3, 1000, true, "no limit"}, {3, 1, true, "never"},
		} {
			if got := m.Take(step.project, step.events); got != step.want {
				t.Errorf("project %d, %d events: %v (%s)", step.project, step.events, got, step.why)
			}
		}
		m.Refund(2, 1) // they could not be kept
		if !m.Take(2, 1) {
			t.Error("what was given back is not free")
		}
		u := m.Usage(1)
		if u.Events != 14 || u.Refused != 8 || u.Limit != 10 || !u.From.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) || !u.To.Equal(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("usage %+v", u)
		}
		stop()
		// Another node, or the next start, continues from the stored counts.
		again, stop := meter(t, d, cfg, c)
		if again.Take(1, 1) {
			t.Error("a restart forgot the quota")
		}
		if u := again.Usage(1); u.Events != 14 || u.Refused != 9 {
			t.Errorf("usage after a restart %+v", u)
		}
		c.set(c.now().Add(2 * time.Hour))
		if !again.Take(1, 3) {
			t.Error("nothing in the next month")
		}
		if u := again.Usage(1); u.Events != 3 || u.Refused != 0 {
			t.Errorf("usage of the next month %+v", u)
		}
		c.set(c.now().Add(-2 * time.Hour)) // the clock is set back
		stop()
		last, _ := meter(t, d, cfg, c)
		if u := last.Usage(1); u.Events != 14 || u.Refused != 9 {
			t.Errorf("usage of March, back again: %+v", u)
		}
		var refused int64
		if err := d.Read(t.Context()).NewRaw("SELECT sum(count) FROM ingestion_warnings WHERE type = 'events_over_quota'").Scan(t.Context(), &refused); err != nil || refused != 10 {
			t.Errorf("warnings count %d, %v", refused, err)
		}
	})
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 31, 23, 59, 59, 0, time.FixedZone("", 3600))
	for period, want := range map[string]string{
		capture.PerHour:  "2026-12-31T22:00:00Z 2026-12-31T23:00:00Z",
		capture.PerDay:   "2026-12-31T00:00:00Z 2027-01-01T00:00:00Z",
		capture.PerMonth: "2026-12-01T00:00:00Z 2027-01-01T00:00:00Z",
	} {
		m, _ := meter(t, dbtest.SQLite(t), quota(1, period), newClock(at))
		u := m.Usage(1)
		if got := u.From.Format(time.RFC3339) + " " + u.To.Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", period, got, want)
		}
	}
	for name, q := range map[string]capture.QuotaConfig{
		"period":   {Period: "year"},
		"events":   {Period: "day", Events: -1},
		"projects": {Period: "day", Projects: map[string]int64{"one": 1}},
	} {
		cfg := ingestion.DefaultConfig()
		cfg.Quota = q
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "quota."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMeterWorksWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	m, stop := meter(t, d, quota(2, capture.PerDay), newClock(time.Now()))
	if !m.Take(1, 2) || m.Take(1, 1) {
		t.Error("the meter does not count")
	}
	stop()
	if u := m.Usage(1); u.Events != 2 || u.Refused != 1 {
		t.Errorf("what could not be written is forgotten: %+v", u)
	}
}

func TestClientsOverQuota(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	m, _ := meter(t, d, quota(1, capture.PerDay), newClock(time.Now()))
	j := &memoryJournal{err: errors.New("no space")}
	base := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithMeter(m),
		capture.NewUsageHTTP(m))
	one := `{"api_key":"phc_test","event":"a","distinct_id":"u"}`
	for _, c := range []struct {
		name, path, header, body string
		status                   int
		want                     string
	}{
		{"what cannot be kept is not counted", "/capture/", "", one, 500, ""},
		{"the last one", "/capture/", "", one, 200, `{"status":1}`},
		{"over", "/capture/", "", one, 200, `{"status":1,"quota_limited":["events"]}`},
		{"a batch", "/batch/", "", `{"api_key":"phc_test","batch":[{"event":"a","distinct_id":"u"}]}`, 200, `{"status":1,"quota_limited":["events"]}`},
		{"nothing at all is not over", "/batch/", "", `{"api_key":"phc_test","batch":[]}`, 200, `{"status":1}`},
		{"a beacon", "/e/?beacon=1", "", one, 204, ""},
		{"with verdicts", "/capture/", "1", one, 200,
			`{"status":1,"results":[{"result":"drop","details":"events_over_quota"}],"quota_limited":["events"]}`},
	} {
		got := send(t, "POST", base+c.path, "application/json", c.body, "Guidon-Verdicts", c.header)
		if got.status != c.status || c.want != "" && got.body != c.want {
			t.Errorf("%s: %d %s, want %d %s", c.name, got.status, got.body, c.status, c.want)
		}
		j.mu.Lock()
		j.err = nil
		j.mu.Unlock()
	}
	got := v1(t, base, `{"batch":[{"uuid":"`+id1+`","event":"a","distinct_id":"u"}]}`, "Authorization", "Bearer phc_test")
	if got.status != 402 || !strings.Contains(got.body, "billing_limit_exceeded") {
		t.Errorf("the protocol of 2026: %d %s", got.status, got.body)
	}
	if got := ask(t, "GET", base+"/api/projects/1/ingestion_usage/", "", 200); got["events"] != 1.0 || got["refused"] != 5.0 || got["limit"] != 1.0 || got["quota_limited"] != true {
		t.Errorf("usage %v", got)
	}
}

// TestNodesShareAQuota has three nodes take events of one project at once: together they
// accept little more than the quota, each refuses soon, and all show the same sums.
func TestNodesShareAQuota(t *testing.T) {
	t.Parallel()
	const limit, each = 1000, 10
	d := dbtest.Postgres(t)
	c := newClock(time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC))
	var nodes [3]*capture.Meter
	for i := range nodes {
		nodes[i], _ = meter(t, d, quota(limit, capture.PerMonth), c)
	}
	// Nine tenths are used up at the pace of the writes, the rest as fast as it goes.
	if !nodes[0].Take(1, limit*9/10) {
		t.Fatal("refused below the quota")
	}
	for _, m := range nodes[1:] {
		eventually(t, "the events of another node", func() bool { return m.Usage(1).Events == limit*9/10 })
	}
	accepted := int64(limit * 9 / 10)
	for _, m := range nodes {
		for m.Take(1, each) {
			accepted += each
		}
	}
	// At worst no node has written since: the excess is at most what the others had left.
	if excess := accepted - limit; excess < 0 || excess > (int64(len(nodes))-1)*limit/10 {
		t.Errorf("%d of %d events accepted", accepted, limit)
	}
	for i, m := range nodes {
		eventually(t, "the sum of all nodes", func() bool { return m.Usage(1).Events == accepted })
		if m.Take(1, 1) {
			t.Errorf("node %d accepts events over the quota", i)
		}
	}
}

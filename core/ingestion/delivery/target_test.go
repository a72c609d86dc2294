package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// TestLimitsOfTheConfig changes one option of a valid configuration. Want is the key that the error names, "" for none.
func TestLimitsOfTheConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Start = "begin" }, ""},
		{func(c *Config) { c.Start = "" }, "start"},
		{func(c *Config) { c.MaxEvents = 1 }, ""},
		{func(c *Config) { c.MaxEvents = 0 }, "max_events"},
		{func(c *Config) { c.MaxBytes = 1 }, ""},
		{func(c *Config) { c.MaxBytes = 4 << 20 }, ""},
		{func(c *Config) { c.MaxBytes = 0 }, "max_bytes"},
		{func(c *Config) { c.MaxBytes = 4<<20 + 1 }, "max_bytes"},
		{func(c *Config) { c.Linger = 0 }, ""},
		{func(c *Config) { c.Linger = -1 }, "linger"},
		{func(c *Config) { c.MaxInFlight = 1 }, ""},
		{func(c *Config) { c.MaxInFlight = 64 }, ""},
		{func(c *Config) { c.MaxInFlight = 0 }, "max_in_flight"},
		{func(c *Config) { c.MaxInFlight = 65 }, "max_in_flight"},
		{func(c *Config) { c.Timeout = 0 }, "timeout"},
		{func(c *Config) { c.RetryMin, c.RetryMax = 1, 1 }, ""},
		{func(c *Config) { c.RetryMin = 0 }, "retry_min"},
		{func(c *Config) { c.RetryMin, c.RetryMax = 2, 1 }, "retry_min"},
		{func(c *Config) { c.ConfigRetry = 0 }, "config_retry"},
		{func(c *Config) { c.MaxInternal = 1 }, ""},
		{func(c *Config) { c.MaxInternal = 0 }, "max_internal"},
		{func(c *Config) { c.ForgetAfter = 0 }, ""},
		{func(c *Config) { c.ForgetAfter = -1 }, "forget_after"},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		checkError(t, cfg.Validate(), "ingestion.deliver.", c.want)
	}
}

// TestLimitsOfASection is TestLimitsOfTheConfig for the delivery section of a sink.
func TestLimitsOfASection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		section settings.Delivery
		want    string
	}{
		{settings.Delivery{}, ""},
		{settings.Delivery{Batch: settings.Batch{MaxEvents: 50_000, MaxBytes: 4 << 20, Linger: time.Minute, MaxInFlight: 64}, Sample: 1}, ""},
		{settings.Delivery{Batch: settings.Batch{MaxEvents: -1}}, "batch.max_events"},
		{settings.Delivery{Batch: settings.Batch{MaxEvents: 50_001}}, "batch.max_events"},
		{settings.Delivery{Batch: settings.Batch{MaxBytes: -1}}, "batch.max_bytes"},
		{settings.Delivery{Batch: settings.Batch{MaxBytes: 4<<20 + 1}}, "batch.max_bytes"},
		{settings.Delivery{Batch: settings.Batch{Linger: -1}}, "batch.linger"},
		{settings.Delivery{Batch: settings.Batch{Linger: time.Minute + 1}}, "batch.linger"},
		{settings.Delivery{Batch: settings.Batch{MaxInFlight: -1}}, "batch.max_in_flight"},
		{settings.Delivery{Batch: settings.Batch{MaxInFlight: 65}}, "batch.max_in_flight"},
		{settings.Delivery{Sample: -0.1}, "sample"},
		{settings.Delivery{Sample: 1.1}, "sample"},
		{settings.Delivery{Retry: settings.Retry{Initial: -1}}, "retry.initial"},
		{settings.Delivery{Retry: settings.Retry{Max: -1}}, "retry.initial"},
		{settings.Delivery{Retry: settings.Retry{MaxAttempts: -1}}, "retry.max_attempts"},
		{settings.Delivery{Retry: settings.Retry{MaxAge: -1}}, "retry.max_attempts"},
		{settings.Delivery{Retry: settings.Retry{OnExhausted: "hold"}}, ""},
		{settings.Delivery{Retry: settings.Retry{OnExhausted: "dead_letter"}}, ""},
		{settings.Delivery{Retry: settings.Retry{OnExhausted: "drop"}}, "retry.on_exhausted"},
		{settings.Delivery{Staged: settings.Staged{MaxEvents: -1}}, "staged"},
		{settings.Delivery{Staged: settings.Staged{MaxBytes: -1}}, "staged"},
		{settings.Delivery{Staged: settings.Staged{MaxAge: -1}}, "staged"},
		{settings.Delivery{Properties: []map[string]any{{"key": "p", "operator": "teleports"}}}, "properties"},
	} {
		checkError(t, ValidateSection(c.section), "delivery.", c.want)
	}
}

func checkError(t *testing.T, err error, prefix, key string) {
	t.Helper()
	switch {
	case key == "" && err != nil:
		t.Errorf("%v, want no error", err)
	case key != "" && (err == nil || !strings.HasPrefix(err.Error(), prefix+key)):
		t.Errorf("%v, want an error of %s%s", err, prefix, key)
	}
}

// TestLimitsOfATarget has the limits of the server's configuration, of the sink's own section and of the plugin.
func TestLimitsOfATarget(t *testing.T) {
	t.Parallel()
	type limits struct {
		events, bytes, inFlight, stagedEvents, stagedBytes int
		linger, stagedAge                                  time.Duration
		ordering                                           sdk.Ordering
	}
	base := limits{1000, 2 << 20, 4, 100_000, 128 << 20, 200 * time.Millisecond, time.Minute, sdk.OrderNone}
	for _, c := range []struct {
		name    string
		section settings.Delivery
		plugin  sdk.SinkProperties
		want    func(*limits)
	}{
		{"of the server", settings.Delivery{}, sdk.SinkProperties{MaxInFlight: 10}, func(*limits) {}},
		{"of the plugin", settings.Delivery{}, sdk.SinkProperties{MaxInFlight: 2, MaxEvents: 7, MaxBytes: 70, Linger: time.Second, MaxStagedEvents: 9, MaxStagedBytes: 90, MaxStagedAge: time.Hour},
			func(l *limits) { *l = limits{7, 70, 2, 9, 90, time.Second, time.Hour, sdk.OrderNone} }},
		{"of the section", settings.Delivery{Batch: settings.Batch{MaxEvents: 5, MaxBytes: 50, Linger: time.Minute, MaxInFlight: 3}, Staged: settings.Staged{MaxEvents: 6, MaxBytes: 60, MaxAge: time.Second}},
			sdk.SinkProperties{MaxInFlight: 9}, func(l *limits) { *l = limits{5, 50, 3, 6, 60, time.Minute, time.Second, sdk.OrderNone} }},
		{"the smaller one: of the plugin", settings.Delivery{Batch: settings.Batch{MaxEvents: 8}}, sdk.SinkProperties{MaxInFlight: 4, MaxEvents: 7}, func(l *limits) { l.events = 7 }},
		{"the smaller one: of the section", settings.Delivery{Batch: settings.Batch{MaxEvents: 6}}, sdk.SinkProperties{MaxInFlight: 4, MaxEvents: 7}, func(l *limits) { l.events = 6 }},
		{"never above the upper limits", settings.Delivery{}, sdk.SinkProperties{MaxInFlight: 4, MaxEvents: 1e6, MaxBytes: 1e9, Linger: time.Hour},
			func(l *limits) { l.events, l.bytes, l.linger = 50_000, 4<<20, time.Minute }},
		{"one batch without a number", settings.Delivery{}, sdk.SinkProperties{}, func(l *limits) { l.inFlight = 1 }},
		{"one batch in total order", settings.Delivery{}, sdk.SinkProperties{MaxInFlight: 10, Ordering: sdk.OrderTotal}, func(l *limits) { l.inFlight, l.ordering = 1, sdk.OrderTotal }},
		{"several in the order per key", settings.Delivery{}, sdk.SinkProperties{MaxInFlight: 10, Ordering: sdk.OrderPerKey}, func(l *limits) { l.ordering = sdk.OrderPerKey }},
		{"one batch, in order, before a flush", settings.Delivery{}, sdk.SinkProperties{MaxInFlight: 10, Commit: sdk.CommitOnFlush, Ordering: sdk.OrderPerKey},
			func(l *limits) { l.inFlight, l.ordering = 1, sdk.OrderTotal }},
	} {
		target := testTarget(&scriptedSink{props: c.plugin})
		target.own = c.section
		target.cfg.MaxInFlight = 4
		size, staged := target.batchSize(), target.stagedLimits()
		got := limits{size.events, size.bytes, target.maxInFlight(), staged.events, staged.bytes, size.linger, staged.age, target.ordering()}
		want := base
		if c.want(&want); got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, got, want)
		}
	}
}

func TestPausesOfRetries(t *testing.T) {
	t.Parallel()
	target := testTarget(&scriptedSink{})
	target.cfg.RetryMin, target.cfg.RetryMax, target.cfg.ConfigRetry = time.Second, time.Minute, 5*time.Minute
	for _, c := range []struct {
		section                          settings.Retry
		min, max, configMin, configLimit time.Duration
	}{
		{settings.Retry{}, time.Second, time.Minute, 10 * time.Second, 5 * time.Minute},
		{settings.Retry{Initial: 2 * time.Second}, 2 * time.Second, time.Minute, 20 * time.Second, 5 * time.Minute},
		{settings.Retry{Max: 30 * time.Second}, time.Second, 30 * time.Second, 10 * time.Second, 5 * time.Minute},
		{settings.Retry{Initial: 2 * time.Minute}, 2 * time.Minute, 2 * time.Minute, 5 * time.Minute, 5 * time.Minute},
	} {
		target.own.Retry = c.section
		p := target.retryPauses()
		if p.normal.Min != c.min || p.normal.Max != c.max || p.misconfigured.Min != c.configMin || p.misconfigured.Max != c.configLimit {
			t.Errorf("%+v: %+v", c.section, p)
		}
	}
	if b := target.backoff(); b.Min != time.Second || b.Max != time.Minute {
		t.Errorf("%+v", b)
	}
}

package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/host/metrics"
)

// TestPluginCPUIsACounter checks that the CPU time of an instance goes on after a
// restart, under one series.
func TestPluginCPUIsACounter(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m, err := metrics.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.SetUsage("file", 10, 1, 3*time.Second)
	m.SetUsage("file", 10, 1, 5*time.Second)
	m.SetUsage("file", 11, 1, time.Second)
	m.SetUsage("file", 11, 1, 2*time.Second)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "guidon_plugin_cpu_seconds_total" {
			continue
		}
		if n := len(f.GetMetric()); n != 1 {
			t.Errorf("%d series", n)
		}
		if got := f.GetMetric()[0].GetCounter().GetValue(); got != 7 {
			t.Errorf("%v s of CPU, want 7", got)
		}
		return
	}
	t.Error("no CPU time")
}

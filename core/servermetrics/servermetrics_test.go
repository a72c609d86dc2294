package servermetrics_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/servermetrics"
)

func TestBuildAndDisk(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	if err := errors.Join(servermetrics.RegisterBuild(reg, "v1.2.3"), servermetrics.RegisterDisk(reg, t.TempDir())); err != nil {
		t.Fatal(err)
	}
	found := gather(t, reg)
	if found["guidon_build_info"] != 1 || found["guidon_data_disk_free_bytes"] <= 0 || found["guidon_data_disk_size_bytes"] < found["guidon_data_disk_free_bytes"] {
		t.Errorf("metrics %v", found)
	}
}

func TestDataKeepsTheLastFigures(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	d, err := servermetrics.NewData(servermetrics.Source{
		Persons:     func(context.Context) (int64, error) { return 42, nil },
		OldestEvent: func(context.Context) (time.Time, error) { return time.Unix(1700000000, 0), nil },
	}, zap.NewNop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	if got := gather(t, reg); len(got) != 0 {
		t.Errorf("%v before the first reading", got)
	}
	d.Start()
	t.Cleanup(func() { _ = d.Stop(context.Background()) })
	deadline := time.Now().Add(20 * time.Second)
	for {
		got := gather(t, reg)
		if got["guidon_persons"] == 42 && got["guidon_events_oldest_timestamp_seconds"] == 1.7e9 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %v", got)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		out[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	return out
}

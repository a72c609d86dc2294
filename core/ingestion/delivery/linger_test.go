package delivery

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
)

// Partitions of a process fill batches for as many times the linger of the config. The
// sink's own linger stays.
func TestLingerBesideOtherPartitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config, plugin, own time.Duration
		partitions          int64
		want                time.Duration
	}{
		{200 * time.Millisecond, 0, 0, 1, 200 * time.Millisecond},
		{200 * time.Millisecond, 0, 0, 3, 600 * time.Millisecond},
		{200 * time.Millisecond, 0, 0, 12, time.Second},
		{2 * time.Second, 0, 0, 12, 2 * time.Second},
		{200 * time.Millisecond, 300 * time.Millisecond, 0, 12, 300 * time.Millisecond},
		{200 * time.Millisecond, 0, 20 * time.Millisecond, 12, 20 * time.Millisecond},
	} {
		sink := &scriptedSink{}
		sink.props.Linger = c.plugin
		target := testTarget(sink)
		target.cfg.Linger, target.own.Batch.Linger = c.config, c.own
		target.active.Store(c.partitions)
		if got := target.batchSize().linger; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// noSinks is a node without sinks.
type noSinks struct{}

func (noSinks) Sinks() []Sink            { return nil }
func (noSinks) Changed() <-chan struct{} { return nil }

func TestServicesOfPartitionsAreCounted(t *testing.T) {
	t.Parallel()
	d, log := dbtest.SQLite(t), logOf()
	template, err := NewService(DefaultConfig(), event.DefaultLimits(), log, d, noSinks{}, NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	want := func(n int64) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); template.active.Load() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d services, want %d", template.active.Load(), n)
			}
		}
	}
	var running []*Service
	for n := range 3 {
		one := template.ForPartition(Partition{Number: n, Log: log, Sinks: noSinks{}})
		if err := one.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		running = append(running, one)
		want(int64(n) + 1)
	}
	for n, one := range running {
		if err := one.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		want(int64(2 - n))
	}
}

package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// noopSink accepts every batch and does nothing, four batches at a time.
type noopSink struct{}

func noopPlugin() sdk.Plugin {
	return sdk.Plugin{Name: "noop", Version: "1.0.0", Sink: func() sdk.Sink { return noopSink{} }}
}

func (noopSink) Open(context.Context, sdk.OpenRequest) (sdk.SinkProperties, error) {
	return sdk.SinkProperties{MaxInFlight: 4}, nil
}
func (noopSink) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	return b.Committed(), nil
}
func (noopSink) Flush(_ context.Context, r sdk.FlushRequest) (sdk.FlushResult, error) {
	return sdk.FlushResult{CommittedThrough: r.UpTo}, nil
}
func (noopSink) Close(context.Context) error { return nil }

// hostSinks adapts a host to delivery.
type hostSinks struct{ *host.Host }

func (h hostSinks) Sinks() (out []delivery.Sink) {
	for _, s := range h.Host.Sinks() {
		out = append(out, s)
	}
	return out
}

// BenchmarkDelivery delivers 200,000 events of 500 bytes from the journal to a
// plugin process that does nothing, over mutual TLS, until the cursor has passed
// them. It reports the CPU time of the server and of the plugin apart.
func BenchmarkDelivery(b *testing.B) {
	const requests, each = 2000, 100
	dir := b.TempDir()
	jc := journal.DefaultConfig()
	jc.MinFreeBytes = 0
	j, err := journal.Open(jc, dir, zap.NewNop(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close(context.Background()) })
	for i := range requests {
		body := []byte{'['}
		for k := range each {
			if k > 0 {
				body = append(body, ',')
			}
			n := i*each + k
			body = fmt.Appendf(body, `{"event":"$pageview","distinct_id":"d%04d","timestamp":"2026-05-01T09:59:58.123Z","uuid":"0190a5a2-7b3c-7000-8000-%012d",`+
				`"properties":{"$os":"Linux","$browser":"Chrome","$browser_version":120,"$current_url":"https://shop.example/products/17?ref=mail",`+
				`"$host":"shop.example","$pathname":"/products/17","$screen_height":1080,"$lib":"web","$lib_version":"1.96.1","price":12.50}}`, n%1000, n)
		}
		rec := event.Record{ReceivedAt: time.Now(), ProjectID: 1, Items: append(body, ']')}
		if _, err := j.Append(b.Context(), rec.Append(nil)); err != nil {
			b.Fatal(err)
		}
	}
	store, err := db.Open(b.Context(), db.Config{URL: "sqlite:" + filepath.Join(dir, "db")}, dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	if err := store.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	var took, ours, theirs time.Duration
	for i := range b.N {
		name := fmt.Sprint("noop", i)
		hc := settings.Default()
		hc.Instances = []settings.Instance{{Name: name, Kind: settings.KindSink, Use: "noop"}}
		h, err := host.New(hc, host.Deps{DataDir: dir, Bundled: func(name string) []string { return []string{os.Args[0], "plugin", "exec", name} }})
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := h.Sinks()[0].Ready(b.Context()); err != nil {
			b.Fatal(err)
		}
		ic := ingestion.DefaultConfig()
		ic.Deliver.Start = "begin"
		d, err := delivery.NewService(ic.Deliver, ic.Limits, j, store, hostSinks{h}, delivery.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
		if err != nil {
			b.Fatal(err)
		}
		pid := h.Status()[0].PID
		begin, host, plugin := time.Now(), processCPU(b, os.Getpid()), processCPU(b, pid)
		if err := d.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		for deliveredCount(b, j, "sink/"+name) < requests*each {
			time.Sleep(5 * time.Millisecond)
		}
		took, ours, theirs = took+time.Since(begin), ours+processCPU(b, os.Getpid())-host, theirs+processCPU(b, pid)-plugin
		if err := d.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := h.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	events := float64(b.N * requests * each)
	b.ReportMetric(events/took.Seconds(), "events/s")
	b.ReportMetric(float64(ours.Nanoseconds())/events/1000, "host-cpu-µs/event")
	b.ReportMetric(float64(theirs.Nanoseconds())/events/1000, "plugin-cpu-µs/event")
}

// deliveredCount returns the number of events that a reader of the journal has passed.
func deliveredCount(b *testing.B, j journal.Journal, reader string) uint64 {
	b.Helper()
	stats, err := j.Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range stats.Readers {
		if r.Name == reader {
			return r.Position.Count
		}
	}
	return 0
}

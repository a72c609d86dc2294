package ingestion_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/reader"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// fakeSink records its batches. Functions compute its answers.
type fakeSink struct {
	name  string
	props sdk.SinkProperties
	write func(b *sdk.Batch) (sdk.WriteResult, error)
	flush func(upTo uint64) (sdk.FlushResult, error)
	ready func(ctx context.Context) error

	mu      sync.Mutex
	batches []sdk.Batch
	kept    []string // names of events that are safe, in order
	resumed uint64
}

func (s *fakeSink) Name() string                   { return s.name }
func (s *fakeSink) Properties() sdk.SinkProperties { return s.props }
func (s *fakeSink) Resume(through uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = through
}

func (s *fakeSink) Ready(ctx context.Context) error {
	if s.ready != nil {
		return s.ready(ctx)
	}
	return ctx.Err()
}

func (s *fakeSink) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, *b)
	result, err := b.Committed(), error(nil)
	if s.write != nil {
		result, err = s.write(b)
	}
	if err == nil && (result.Outcome == sdk.Committed || result.Outcome == sdk.Partial && len(result.Failures) > 0 && result.Failures[0].Index < 9) {
		for i, name := range eventNames(b) {
			if !slices.ContainsFunc(result.Failures, func(f sdk.Failure) bool { return f.Index == i }) {
				s.kept = append(s.kept, name)
			}
		}
	}
	return result, err
}

func (s *fakeSink) Flush(_ context.Context, _ sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flush != nil {
		return s.flush(upTo)
	}
	return sdk.FlushResult{CommittedThrough: upTo}, nil
}

func (s *fakeSink) has() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.kept, " ")
}

func (s *fakeSink) sent() []sdk.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

func eventNames(b *sdk.Batch) (names []string) {
	events, err := b.Events()
	if err != nil {
		panic(err)
	}
	for _, e := range events {
		names = append(names, e.Name)
	}
	return names
}

// sinkSet is a set of sinks that a test changes.
type sinkSet struct {
	mu      sync.Mutex
	list    []delivery.Sink
	changed chan struct{}
}

func newSinks(list ...delivery.Sink) *sinkSet {
	return &sinkSet{list: list, changed: make(chan struct{})}
}

func (s *sinkSet) Sinks() []delivery.Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func (s *sinkSet) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *sinkSet) set(list ...delivery.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	close(s.changed)
	s.changed = make(chan struct{})
}

func deliverConfig() ingestion.Config {
	cfg := ingestion.DefaultConfig()
	cfg.Deliver.RetryMin, cfg.Deliver.RetryMax = time.Millisecond, 5*time.Millisecond
	cfg.Deliver.ConfigRetry = 20 * time.Millisecond
	cfg.Deliver.Linger = time.Millisecond
	cfg.Deliver.Start = "begin"
	return cfg
}

func startDeliver(tb testing.TB, cfg ingestion.Config, j reader.Log, d *db.DB, sinks delivery.Sinks) *delivery.Service {
	tb.Helper()
	del := newDeliver(tb, cfg, j, d, sinks)
	runDeliver(tb, del)
	return del
}

func newDeliver(tb testing.TB, cfg ingestion.Config, j reader.Log, d *db.DB, sinks delivery.Sinks) *delivery.Service {
	tb.Helper()
	del, err := delivery.NewService(cfg.Deliver, cfg.Limits, j, d, sinks, delivery.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		tb.Fatal(err)
	}
	return del
}

func runDeliver(tb testing.TB, del *delivery.Service) {
	tb.Helper()
	if err := del.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stopDeliver(tb, del) })
}

func stopDeliver(tb testing.TB, d *delivery.Service) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		tb.Error(err)
	}
}

func committed(tb testing.TB, j journal.Journal, reader string) journal.Position {
	tb.Helper()
	stats, err := j.Stats(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range stats.Readers {
		if r.Name == reader {
			return r.Position
		}
	}
	return journal.Position{}
}

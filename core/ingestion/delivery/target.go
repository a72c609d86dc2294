package delivery

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

// target is a sink with its configuration: what the parts of a delivery share.
// The configuration does not change after configure.
type target struct {
	sink        Sink
	cfg         Config
	limits      event.Limits
	own         settings.Delivery
	filter      *filter.Filter
	matchers    filter.Matchers // nil has no operators of plugins
	stats       status.Tracker
	metrics     *Metrics
	deadMetrics *deadletter.Metrics
	logger      *zap.Logger
	tracing     *tracing.Tracing // nil: off
	lease       *lease           // nil: of a journal that only this node reads
	active      *atomic.Int64    // services of this process that run
}

// configure reads the sink's own configuration.
func (t *target) configure() (err error) {
	if t.own, err = sectionOf(t.sink); err != nil {
		return err
	}
	t.filter, err = filter.New(t.own, nil)
	return err
}

func (t *target) name() string { return t.sink.Name() }

// sessionName names the session of the sink: batch ids of different ones differ.
func (t *target) sessionName() string { return t.sink.Name() + t.lease.suffix() }

// session identifies the opening of the plugin that answers; 0 for a sink that
// does not report it.
func (t *target) session() uint64 {
	if s, ok := t.sink.(interface{ Session() uint64 }); ok {
		return s.Session()
	}
	return 0
}

// forgiveExits tells the sink that an event was the cause of the last exits of its
// process, and is sent no more.
func (t *target) forgiveExits() {
	if s, ok := t.sink.(interface{ ForgiveExits() }); ok {
		s.ForgiveExits()
	}
}

// processOf names the process of a sink. Sinks with the same name may share one, and end
// with it when a call of one of them crashes it.
func processOf(s Sink) string {
	if p, ok := s.(interface{ Process() string }); ok {
		return p.Process()
	}
	return s.Name()
}

func (t *target) reportsSessions() bool {
	_, ok := t.sink.(interface{ Session() uint64 })
	return ok
}

// resume tells the sink the sequence number up to which everything is committed.
func (t *target) resume(committedThrough uint64) {
	if r, ok := t.sink.(interface{ Resume(committedThrough uint64) }); ok && committedThrough > 0 {
		r.Resume(committedThrough)
	}
}

// smallest returns the smaller of two limits of which 0 is none.
func smallest[T int | time.Duration](a, b T) T {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// batchSize bounds a batch, and how long its first event waits for others.
type batchSize struct {
	events, bytes int
	linger        time.Duration
}

// count returns how many of the events, from the first on, are a batch: at least one,
// however large it is.
func (s batchSize) count(events []sdk.Event) (n int) {
	for bytes := 0; n < len(events) && n < s.events; n++ {
		bytes += len(events[n].Properties) + reader.EventOverhead
		if n > 0 && bytes > s.bytes {
			break
		}
	}
	return n
}

func (t *target) batchSize() batchSize {
	c, own, p := t.cfg, t.own.Batch, t.sink.Properties()
	s := batchSize{c.MaxEvents, c.MaxBytes, reader.ScalePause(c.Linger, t.active.Load(), maxSharedLinger)}
	if n := smallest(own.MaxEvents, p.MaxEvents); n > 0 {
		s.events = min(n, maxBatchEvents)
	}
	if n := smallest(own.MaxBytes, p.MaxBytes); n > 0 {
		s.bytes = min(n, maxBatchBytes)
	}
	if l := smallest(own.Linger, p.Linger); l > 0 {
		s.linger = min(l, maxLinger)
	}
	return s
}

// maxInFlight bounds the batches in flight. It is 1 where the order of all
// events counts, or the order of what a flush commits.
func (t *target) maxInFlight() int {
	p := t.sink.Properties()
	if p.Ordering == sdk.OrderTotal || p.Commit == sdk.CommitOnFlush {
		return 1
	}
	return max(1, min(p.MaxInFlight, smallest(t.own.Batch.MaxInFlight, t.cfg.MaxInFlight)))
}

// ordering is the order that batches must keep.
func (t *target) ordering() sdk.Ordering {
	if p := t.sink.Properties(); p.Commit != sdk.CommitOnFlush {
		return p.Ordering
	}
	return sdk.OrderTotal
}

// Limits of staged events for a sink that declares none.
const (
	defaultStagedEvents = 100_000
	defaultStagedBytes  = 128 << 20
	defaultStagedAge    = time.Minute
)

// stagedLimits bounds what a sink stages before it must flush.
type stagedLimits struct {
	events, bytes int
	age           time.Duration
}

func (t *target) stagedLimits() stagedLimits {
	own, p := t.own.Staged, t.sink.Properties()
	out := stagedLimits{defaultStagedEvents, defaultStagedBytes, defaultStagedAge}
	if n := smallest(own.MaxEvents, p.MaxStagedEvents); n > 0 {
		out.events = n
	}
	if n := smallest(own.MaxBytes, p.MaxStagedBytes); n > 0 {
		out.bytes = n
	}
	if age := smallest(own.MaxAge, p.MaxStagedAge); age > 0 {
		out.age = age
	}
	return out
}

// backoff is the pause while the database or the journal is down.
func (t *target) backoff() retry.Backoff {
	return retry.Backoff{Min: t.cfg.RetryMin, Max: t.cfg.RetryMax}
}

// retryPauses are the pauses between the attempts of one batch.
type retryPauses struct {
	normal        retry.Backoff
	misconfigured retry.Backoff // while the sink reports a wrong configuration
}

func (t *target) retryPauses() *retryPauses {
	c, own := t.cfg, t.own.Retry
	if own.Initial > 0 {
		c.RetryMin = own.Initial
	}
	if own.Max > 0 {
		c.RetryMax = own.Max
	}
	return &retryPauses{
		normal:        retry.Backoff{Min: c.RetryMin, Max: max(c.RetryMin, c.RetryMax)},
		misconfigured: retry.Backoff{Min: min(10*c.RetryMin, c.ConfigRetry), Max: c.ConfigRetry},
	}
}

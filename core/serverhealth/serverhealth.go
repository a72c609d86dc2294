// Package serverhealth keeps a day of a server's health in memory: rates, latencies,
// backlogs, disk and memory use, for charts without a monitoring system.
//
// A Recorder reads the metrics of this process every Step and keeps the values of the
// fixed list in series.go in two rings: one value each Step for FineSpan, and one each
// CoarseStep for CoarseSpan. All memory is allocated at the start: Bytes returns how much.
// Nothing is stored; a server that starts again begins with empty rings. Each node of a
// cluster has its own.
//
// Each plugin instance has rings too, with the list in instances.go. They are made when the
// instance is first seen, for MaxInstances at most, and go with the instance: InstanceBytes
// is the memory of one.
//
// Only collectors that have a metric of the list are read, so that sampling starts none of
// the queries that other metrics need: Watch returns a registry that knows them.
//
// A value of a counter is its increase since the sample before, per second of the Steps
// between them: times Step it is the count, also of a server that ran for a part of the
// first one. A counter that is less than before, because label sets were removed, has no
// value for that sample. Percentiles are those of the observations since the sample before, interpolated within the buckets
// of the histogram; without observations there is no value. In the coarse ring, and where
// a reader asks for longer steps, rates are means, and gauges and percentiles are the
// largest value, so that peaks stay visible.
package serverhealth

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Steps and spans of the rings.
const (
	Step       = 15 * time.Second
	FineSpan   = 3 * time.Hour
	CoarseStep = time.Minute
	CoarseSpan = 24 * time.Hour
)

// Recorder keeps the series. Its methods may be called concurrently.
type Recorder struct {
	source prometheus.Gatherer
	now    func() time.Time

	mu        sync.Mutex
	previous  sample
	server    table
	instances map[string]*instance
	leftOut   int // instances without rings

	cancel  context.CancelFunc
	stopped chan struct{}
}

// New returns a Recorder of the metrics of source. now is the clock, nil for time.Now.
func New(source prometheus.Gatherer, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	return &Recorder{source: source, now: now, server: newTable(definitions), instances: map[string]*instance{}}
}

// Bytes returns the memory of the rings.
func (r *Recorder) Bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server.bytes() + len(r.instances)*InstanceBytes
}

// Start samples now and at each following multiple of Step, until Stop.
func (r *Recorder) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.stopped = cancel, make(chan struct{})
	go func() {
		defer close(r.stopped)
		for ctx.Err() == nil {
			r.Sample()
			now := r.now()
			timer := time.NewTimer(now.Truncate(Step).Add(Step).Sub(now))
			select {
			case <-ctx.Done():
				timer.Stop()
			case <-timer.C:
			}
		}
	}()
}

// Stop ends sampling and waits until it has ended.
func (r *Recorder) Stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.stopped
	}
}

// Sample reads the metrics once. Families that cannot be read have no value.
func (r *Recorder) Sample() {
	families, _ := r.source.Gather() // what could be read is there beside an error
	now := r.now()
	named := make(map[string][]*dto.Metric, len(families))
	for _, f := range families {
		named[f.GetName()] = f.GetMetric()
	}
	next := newSample(now, definitions, named)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server.add(now, next.since(definitions, &r.previous))
	r.previous = next
	r.sampleInstances(now, named)
}

// Range is a part of the series: the values of each name at From, From+Step and so on. A
// missing value is NaN.
type Range struct {
	From   time.Time
	Step   time.Duration
	Values [][]float64 // in the order of the names
}

// Read returns the values of names from one time up to another, in steps of at least step;
// steps are multiples of Step, or of CoarseStep where the fine ring does not reach. Times
// outside of the last day are cut off. Unknown names have no values.
func (r *Recorder) Read(names []string, from, to time.Time, step time.Duration) Range {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server.read(names, from, to, step, now)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

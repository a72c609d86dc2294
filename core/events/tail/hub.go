package tail

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/web/stream"
)

// Hub runs the live streams of this node. Its methods are safe for concurrent use.
type Hub struct {
	source  Source
	view    View
	limit   int
	times   Times
	log     *zap.Logger
	metrics *metrics
	service retry.Service

	mu     sync.Mutex
	topics map[int64]*topic
	open   int
	openOf map[int64]int // by project
}

// New returns a hub for at most limit viewers. view must be safe for concurrent use. Nil
// log and reg disable logging and metrics.
func New(source Source, view View, limit int, times Times, log *zap.Logger, reg prometheus.Registerer) *Hub {
	if log == nil {
		log = zap.NewNop()
	}
	h := &Hub{source: source, view: view, limit: limit, times: times, log: log.Named("live"), topics: map[int64]*topic{}, openOf: map[int64]int{}}
	h.metrics = newMetrics(reg, h.Viewers)
	return h
}

// Start allows viewers.
func (h *Hub) Start(context.Context) error {
	h.service.Start()
	return nil
}

// Stop ends all streams and waits for their goroutines.
func (h *Hub) Stop(ctx context.Context) error { return h.service.Stop(ctx) }

// Viewers returns the number of open streams.
func (h *Hub) Viewers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// Limit returns the maximum number of open streams.
func (h *Hub) Limit() int { return h.limit }

// Place is the right to open one stream.
type Place struct {
	hub     *Hub
	project int64
	once    sync.Once
}

// Reserve returns a place for a viewer of a project, or Throttled if all are taken, or the
// half that one project may have. The caller releases it if it does not open a stream.
func (h *Hub) Reserve(project int64) (*Place, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	half := (h.limit + 1) / 2
	switch {
	case h.open < h.limit && h.openOf[project] >= half:
		h.metrics.refuse()
		return nil, fault.Newf(fault.Throttled, "too_many_viewers", "This project has as many live viewers as one project may have (%d). Close one, or raise events.live_viewers, of which this is half.", half).After(10 * time.Second)
	case h.open >= h.limit:
		h.metrics.refuse()
		return nil, fault.Newf(fault.Throttled, "too_many_viewers", "The server has as many live viewers as it may have (%d). Close one, or raise events.live_viewers.", h.limit).After(10 * time.Second)
	}
	h.open++
	h.openOf[project]++
	return &Place{hub: h, project: project}, nil
}

// Release gives the place back. Releasing again has no effect.
func (p *Place) Release() {
	p.once.Do(func() {
		p.hub.mu.Lock()
		defer p.hub.mu.Unlock()
		p.hub.open--
		if p.hub.openOf[p.project]--; p.hub.openOf[p.project] == 0 {
			delete(p.hub.openOf, p.project)
		}
	})
}

// Request configures a stream.
type Request struct {
	Project int64
	Filter  events.Filter // name, distinct id, person and properties of it
	// LastRow is the id of the last message that the client has seen, -1 for none.
	LastRow int64
	// Check returns a fault when the credential of the viewer is not valid any more.
	Check func(context.Context) error
}

// Opener returns the function for stream.Open. The place is released at the end of the
// stream.
func (p *Place) Opener(q Request) func(*stream.Stream) func() {
	return func(s *stream.Stream) func() {
		v := &viewer{
			filter: newFilter(&q.Filter), resume: q.LastRow, check: q.Check, stream: s,
			ended: make(chan struct{}), filled: make(chan struct{}, 1), tokens: MaxRate, refill: time.Now(),
		}
		h := p.hub
		ran := h.service.Go(func(drainCtx, _ context.Context) {
			h.add(q.Project, v)
			v.run(drainCtx, h.times)
		})
		if !ran {
			s.Close()
		}
		return func() {
			close(v.ended)
			h.remove(q.Project, v)
			p.Release()
		}
	}
}

// add makes v join the topic of its project, which it starts if there is none.
func (h *Hub) add(project int64, v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[project]
	if v.hasEnded() {
		return
	}
	if t == nil {
		t = &topic{project: project, wake: make(chan struct{}, 1), viewers: map[*viewer]struct{}{}, position: -1}
		if !h.service.Go(func(drainCtx, _ context.Context) { h.run(drainCtx, t) }) {
			return
		}
		h.topics[project] = t
	}
	t.joining = append(t.joining, v)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (h *Hub) remove(project int64, v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[project]; t != nil {
		delete(t.viewers, v)
	}
}

// viewersOf returns the viewers of a topic.
func (h *Hub) viewersOf(t *topic) []*viewer {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*viewer, 0, len(t.viewers))
	for v := range t.viewers {
		out = append(out, v)
	}
	return out
}

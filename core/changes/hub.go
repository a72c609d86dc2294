package changes

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/snapshot"
)

// Hub follows the changelog and notifies the open streams. Its methods are safe
// for concurrent use.
type Hub struct {
	cfg     Config
	changes Log
	log     *zap.Logger
	metrics *metrics
	service retry.Service

	// memory has the revision that the memory of this process is at least at.
	memory *snapshot.Map[int64, changelog.Head]

	opened chan struct{} // holds one; receives when the first stream of a project opens

	mu      sync.Mutex
	limit   int // of open streams
	topics  map[int64]*topic
	clients map[netip.Addr]int // open streams
	open    int
	stopped bool
	failing bool // the last poll failed; of the polling goroutine
	beat    int  // counts heartbeats; of their goroutine
}

// topic is a project with open streams.
type topic struct {
	project int64
	streams int // open, and about to be opened
	load    sync.Mutex
	loaded  bool
	head    changelog.Head // what all subscribers are notified of, or are being
	busy    bool           // a notification is under way
	subs    map[*subscriber]struct{}
}

// NewHub returns a hub without streams. Nil log and reg disable logging and
// metrics.
func NewHub(cfg Config, changes Log, memory Memory, log *zap.Logger, reg prometheus.Registerer) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	h := &Hub{
		cfg: cfg, changes: changes, log: log.Named("changes"), limit: cfg.MaxStreams,
		topics: map[int64]*topic{}, clients: map[netip.Addr]int{}, opened: make(chan struct{}, 1),
	}
	h.metrics = newMetrics(reg, h.Open)
	h.memory = snapshot.New(snapshot.Options[int64, changelog.Head]{Load: h.refresher(memory.Flags, memory.Actions)})
	return h, nil
}

// refresher returns a function that reads the revision of a project and, if it is
// new, refreshes the memory of this process.
func (h *Hub) refresher(refreshers ...Refresher) func(context.Context, int64, changelog.Head) (changelog.Head, int64, error) {
	return func(ctx context.Context, project int64, old changelog.Head) (changelog.Head, int64, error) {
		heads, err := h.changes.Heads(ctx, []int64{project})
		head := heads[project]
		if err != nil || head == old {
			return head, head.Revision, err
		}
		for _, r := range refreshers {
			if r == nil {
				continue
			}
			if err := r.Refresh(ctx, project); err != nil {
				return head, 0, err
			}
		}
		return head, head.Revision, nil
	}
}

// LimitStreams lowers the bound of open streams to n.
func (h *Hub) LimitStreams(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limit = max(1, min(h.limit, n))
}

// Start begins to follow the changelog.
func (h *Hub) Start(context.Context) error {
	h.service.Start()
	h.service.Go(func(drainCtx, _ context.Context) { h.pollWhileOpen(drainCtx) })
	h.service.Every(time.Second, func(context.Context) { h.sendHeartbeats() })
	return nil
}

// Stop closes all streams and ends following the changelog.
func (h *Hub) Stop(ctx context.Context) error {
	h.mu.Lock()
	h.stopped = true
	subs := h.allLocked(func(*subscriber) bool { return true })
	h.mu.Unlock()
	for _, s := range subs {
		s.stream.Close()
	}
	return h.service.Stop(ctx)
}

// Open returns the number of open streams.
func (h *Hub) Open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// Head returns the revision of a project that the memory of this process has at
// least.
func (h *Hub) Head(ctx context.Context, project int64) (changelog.Head, error) {
	err := h.memory.Refresh(ctx, project)
	head, _ := h.memory.Get(project)
	return head, err
}

// Await makes the memory of this process at least as new as a client has been
// notified of: a revision, a time in whole seconds, or both. It reads the store
// only if memory may be older; concurrent calls share the read. A client that asks
// for what does not exist gets what there is.
func (h *Hub) Await(ctx context.Context, project, revision int64, modified time.Time) error {
	if head, ok := h.memory.Get(project); ok && head.Revision >= revision && !head.At.Before(modified) {
		return nil
	}
	return h.memory.Refresh(ctx, project)
}

// StreamPath returns the path of the public stream for a project key.
func (h *Hub) StreamPath(key string) string { return PathPublic + "?token=" + url.QueryEscape(key) }

// Reasons for which streams are refused.
const (
	refusedTotal   = "streams"
	refusedProject = "project_streams"
	refusedClient  = "client_streams"
)

// reserve counts a stream that is about to be opened. It fails with Throttled or
// Unavailable at a bound.
func (h *Hub) reserve(project int64, client netip.Addr) (*topic, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[project]
	reason := ""
	switch {
	case h.stopped || h.open >= h.limit:
		reason = refusedTotal
	case t != nil && t.streams >= h.cfg.ProjectStreams:
		reason = refusedProject
	case h.clients[client] >= h.cfg.ClientStreams:
		reason = refusedClient
	}
	if reason != "" {
		h.metrics.refuse(reason)
		return nil, refusal(reason)
	}
	if t == nil {
		t = &topic{project: project, subs: map[*subscriber]struct{}{}}
		h.topics[project] = t
		select {
		case h.opened <- struct{}{}:
		default:
		}
	}
	t.streams++
	h.clients[client]++
	h.open++
	return t, nil
}

// refusal asks the client to come back at a random time, so that those who were
// refused together do not come back together.
func refusal(reason string) error {
	wait := time.Duration(10+rand.IntN(50)) * time.Second
	if reason == refusedTotal {
		return fault.New(fault.Unavailable, "too_many_streams", "The server has as many streams as it may have.").After(wait)
	}
	return fault.New(fault.Throttled, "too_many_streams", "Too many open streams.").After(wait)
}

// release ends a reservation.
func (h *Hub) release(t *topic, client netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	if h.clients[client]--; h.clients[client] == 0 {
		delete(h.clients, client)
	}
	if t.streams--; t.streams == 0 && h.topics[t.project] == t {
		delete(h.topics, t.project)
	}
}

// headOf returns the revision that the subscribers of t are notified of. The first
// stream of a project loads it.
func (h *Hub) headOf(ctx context.Context, t *topic) (changelog.Head, error) {
	t.load.Lock()
	defer t.load.Unlock()
	h.mu.Lock()
	head, loaded := t.head, t.loaded
	h.mu.Unlock()
	if loaded {
		return head, nil
	}
	head, err := h.Head(ctx, t.project)
	if err != nil {
		return head, err
	}
	h.mu.Lock()
	t.head, t.loaded = head, true
	h.mu.Unlock()
	return head, nil
}

// add sends a subscriber what it has missed and adds it. Every subscriber of a
// topic has seen the same revision, or is being sent it.
func (h *Hub) add(t *topic, s *subscriber) {
	for {
		h.mu.Lock()
		head, stopped := t.head, h.stopped
		current := s.at() == head.Revision
		if current && !stopped {
			t.subs[s] = struct{}{}
		}
		h.mu.Unlock()
		switch {
		case stopped:
			s.stream.Close()
			return
		case current:
			return
		}
		h.catchUp(t, s, head)
	}
}

func (h *Hub) remove(t *topic, s *subscriber) {
	h.mu.Lock()
	delete(t.subs, s)
	h.mu.Unlock()
}

// catchUp sends the changes between the revision of a subscriber and head.
func (h *Hub) catchUp(t *topic, s *subscriber, head changelog.Head) {
	b := &batch{head: head}
	if s.audience != public && s.at() < head.Revision {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		if read, err := h.read(ctx, t.project, s.at(), head); err == nil && read.head == head {
			b = read
		}
	}
	s.send(b, nil)
}

// read returns the changes after from, at least up to head.
func (h *Hub) read(ctx context.Context, project, from int64, head changelog.Head) (*batch, error) {
	list, complete, err := h.changes.Since(ctx, project, from, maxSent)
	if err != nil {
		return nil, err
	}
	b := &batch{head: head, from: from, changes: list, complete: complete}
	if n := len(list); n > 0 {
		last := changelog.Head{Revision: list[n-1].Revision, At: list[n-1].At}
		b.complete = complete && (last.Revision >= head.Revision || n < maxSent)
		if last.Revision > head.Revision {
			b.head = last
		}
	} else if from != head.Revision {
		b.complete = false // the changelog is another one than before
	}
	return b, nil
}

func (h *Hub) allLocked(want func(*subscriber) bool) []*subscriber {
	var out []*subscriber
	for _, t := range h.topics {
		for s := range t.subs {
			if want(s) {
				out = append(out, s)
			}
		}
	}
	return out
}

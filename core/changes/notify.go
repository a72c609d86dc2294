package changes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/web/stream"
)

// subscriber is one open stream.
type subscriber struct {
	stream   *stream.Stream
	audience audience
	slot     uint8     // of the heartbeat
	until    time.Time // the stream ends: its client authenticates again

	mu       sync.Mutex
	revision int64 // up to which everything was sent
}

func (s *subscriber) at() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// send sends what a subscriber has not seen of b. common are the events for those
// who have seen everything before b, by audience; nil if there are none.
func (s *subscriber) send(b *batch, common *[audiences][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []byte
	switch {
	case s.revision == b.head.Revision:
		return
	case common != nil && s.revision == b.from:
		events = common[s.audience]
	default:
		events = b.appendEvents(nil, s.audience, s.revision)
	}
	s.revision = b.head.Revision
	if len(events) > 0 {
		s.stream.Write(events)
	}
}

// pollWhileOpen polls each interval while streams are open, until ctx ends.
func (h *Hub) pollWhileOpen(ctx context.Context) {
	for {
		select {
		case <-h.opened:
		case <-ctx.Done():
			return
		}
		for h.hasTopics() {
			if !retry.SleepAligned(ctx, h.cfg.PollInterval) {
				return
			}
			h.poll(ctx)
		}
	}
}

func (h *Hub) hasTopics() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.topics) > 0
}

// poll looks for changes of the projects with streams.
func (h *Hub) poll(ctx context.Context) {
	h.mu.Lock()
	ids := make([]int64, 0, len(h.topics))
	for id, t := range h.topics {
		if t.loaded && !t.busy {
			ids = append(ids, id)
		}
	}
	h.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	heads, err := h.changes.Heads(ctx, ids)
	h.report(ctx, err)
	for _, id := range ids {
		if err == nil {
			h.compare(id, heads[id])
		}
	}
}

// report logs when polling begins to fail and when it works again.
func (h *Hub) report(ctx context.Context, err error) {
	switch {
	case err != nil && !h.failing && ctx.Err() == nil:
		h.failing = true
		h.log.Warn("change poll failed", zap.Error(err))
	case err == nil && h.failing:
		h.failing = false
		h.log.Info("change poll recovered")
	}
}

// compare starts a notification if a project has a new revision.
func (h *Hub) compare(project int64, head changelog.Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[project]
	if t == nil || !t.loaded || t.busy || t.head.Revision == head.Revision {
		return
	}
	t.busy = h.service.Go(func(drain, _ context.Context) {
		defer func() {
			h.mu.Lock()
			t.busy = false
			h.mu.Unlock()
		}()
		if err := h.notify(drain, t, head); err != nil && drain.Err() == nil {
			h.log.Warn("change not sent, it is sent later", zap.Int64("project_id", t.project), zap.Error(err))
		}
	})
}

// notify refreshes the memory of this process and sends the changes up to head to
// the subscribers of t.
func (h *Hub) notify(ctx context.Context, t *topic, head changelog.Head) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	h.mu.Lock()
	from := t.head.Revision
	h.mu.Unlock()
	b, err := h.read(ctx, t.project, from, head)
	if err != nil {
		return err
	}
	if err := h.memory.Refresh(ctx, t.project); err != nil {
		return err
	}
	h.mu.Lock()
	t.head = b.head
	subs := make([]*subscriber, 0, len(t.subs))
	for s := range t.subs {
		subs = append(subs, s)
	}
	h.mu.Unlock()
	h.sendAll(ctx, subs, b)
	return nil
}

// perStream is the time between two notifications of a spread, while Config.Spread
// is not exceeded.
const perStream = 200 * time.Microsecond

// senders is the number of goroutines that send a change: clients that do not
// read delay it less.
const senders = 8

// sendAll sends b to the subscribers, over the time of the spread.
func (h *Hub) sendAll(ctx context.Context, subs []*subscriber, b *batch) {
	var common [audiences][]byte
	for a := range common {
		common[a] = b.appendEvents(nil, audience(a), b.from)
	}
	spread := min(h.cfg.Spread, time.Duration(len(subs))*perStream)
	start := time.Now()
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(senders, len(subs)) {
		running.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(subs) {
					return
				}
				due := spread * time.Duration(i) / time.Duration(len(subs))
				if ahead := due - time.Since(start); ahead > 2*time.Millisecond && ctx.Err() == nil {
					time.Sleep(ahead)
				}
				subs[i].send(b, &common)
			}
		})
	}
	running.Wait()
	h.metrics.notified(len(subs), time.Since(start))
}

// sendHeartbeats sends a comment to those streams whose turn it is, and ends those
// whose time is over.
func (h *Hub) sendHeartbeats() {
	slots := int(h.cfg.Heartbeat / time.Second)
	h.beat++
	turn, now := h.beat%slots, time.Now()
	h.mu.Lock()
	subs := h.allLocked(func(s *subscriber) bool { return int(s.slot)%slots == turn })
	h.mu.Unlock()
	for _, s := range subs {
		if now.After(s.until) {
			s.stream.Close()
		} else {
			s.stream.Write(heartbeat)
		}
	}
}

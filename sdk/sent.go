package sdk

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	defaultDedupWindow = time.Hour
	maxSent            = 10_000
)

// sentMemory knows which notifications were delivered, so that one that is sent
// again because its answer was lost does not post twice. The least recent ones
// are forgotten.
type sentMemory struct {
	mu     sync.Mutex
	window time.Duration // 0 remembers nothing
	byID   map[string]*list.Element
	order  *list.List // of *sent, oldest first
}

// sent is one notification, on its way or delivered.
type sent struct {
	id      string
	done    chan struct{} // closed when it is no longer on its way
	ok      bool          // delivered
	at      time.Time
	message string
}

func newSentMemory() *sentMemory {
	return &sentMemory{byID: map[string]*list.Element{}, order: list.New()}
}

// remember sets how long; 0 is the default and less is not at all.
func (m *sentMemory) remember(window time.Duration) time.Duration {
	if window == 0 {
		window = defaultDedupWindow
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.window = max(0, window)
	return m.window
}

// begin returns an entry for a notification that has to be delivered; or, with
// before, what became of it. It waits for a delivery that is under way.
func (m *sentMemory) begin(ctx context.Context, id string, now time.Time) (entry *sent, before *NotifyResult) {
	for {
		m.mu.Lock()
		if m.window == 0 || id == "" {
			m.mu.Unlock()
			return nil, nil
		}
		old := m.lookup(id, now)
		if old == nil {
			entry = &sent{id: id, done: make(chan struct{}), at: now}
			m.byID[id] = m.order.PushBack(entry)
			m.trim()
			m.mu.Unlock()
			return entry, nil
		}
		if old.ok {
			message := old.message
			m.mu.Unlock()
			return nil, &NotifyResult{Outcome: Duplicate, MessageID: message}
		}
		m.mu.Unlock()
		select {
		case <-old.done:
		case <-ctx.Done():
			return nil, &NotifyResult{Outcome: Retry, Err: &Error{
				Class: ClassTransient, Code: "busy", Message: "an earlier delivery is still running", Source: SourcePlugin,
			}}
		}
	}
}

// lookup returns an entry that is young enough, or nil.
func (m *sentMemory) lookup(id string, now time.Time) *sent {
	at, ok := m.byID[id]
	if !ok {
		return nil
	}
	entry := at.Value.(*sent)
	if entry.ok && now.Sub(entry.at) > m.window {
		m.forget(at)
		return nil
	}
	return entry
}

// end records the outcome of a delivery. A nil entry is ignored.
func (m *sentMemory) end(entry *sent, r NotifyResult, now time.Time) {
	if entry == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(entry.done)
	entry.ok = r.Outcome == Delivered || r.Outcome == Duplicate
	entry.at, entry.message = now, r.MessageID
	if at := m.byID[entry.id]; at != nil && at.Value == entry {
		if entry.ok {
			m.order.MoveToBack(at)
		} else {
			m.forget(at)
		}
	}
}

// trim forgets the oldest that are not on their way.
func (m *sentMemory) trim() {
	for at := m.order.Front(); at != nil && m.order.Len() > maxSent; {
		next := at.Next()
		if at.Value.(*sent).ok {
			m.forget(at)
		}
		at = next
	}
}

func (m *sentMemory) forget(at *list.Element) {
	delete(m.byID, at.Value.(*sent).id)
	m.order.Remove(at)
}

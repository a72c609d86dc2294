package ingestion

import (
	"sync"
	"time"
)

// tally is what is known of a delivery, for people to look at.
type tally struct {
	mu          sync.Mutex
	state       string
	since       time.Time
	delivered   uint64
	dead        uint64
	lastError   string
	lastErrorAt time.Time
	skipped     uint64
	now         int // batches on the way
	staged      int
	heavy       int
	oldest      time.Time // of what is staged
}

func (t *tally) skip(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped += uint64(n)
}

func (t *tally) flying(now int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = now
}

func (t *tally) holds(events, bytes int, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.staged, t.heavy, t.oldest = events, bytes, since
}

func (t *tally) is(state string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != state {
		t.state, t.since = state, time.Now()
	}
}

func (t *tally) failed(state string, err error) {
	t.is(state)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastError, t.lastErrorAt = clipText(err.Error(), maxMessage), time.Now()
}

func (t *tally) count(delivered, dead int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delivered += uint64(delivered)
	t.dead += uint64(dead)
}

func (t *tally) status(sink string) SinkStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := SinkStatus{
		Sink: sink, State: t.state, Since: t.since.UTC(), Delivered: t.delivered, DeadLetters: t.dead, LastError: t.lastError,
		Filtered: t.skipped, InFlight: t.now, StagedEvents: t.staged, StagedBytes: t.heavy,
	}
	if !t.oldest.IsZero() {
		at := t.oldest.UTC()
		s.StagedSince = &at
	}
	if !t.lastErrorAt.IsZero() {
		at := t.lastErrorAt.UTC()
		s.LastErrorAt = &at
	}
	return s
}

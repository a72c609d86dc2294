package delivery

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
)

// deliveryStats holds the state and the counts of a delivery for its status. It
// is safe for concurrent use.
type deliveryStats struct {
	mu          sync.Mutex
	state       string
	since       time.Time
	delivered   uint64
	deadLetters uint64
	filtered    uint64
	lastError   string
	lastErrorAt time.Time
	inFlight    int
	staged      int
	stagedBytes int
	stagedSince time.Time
}

func (s *deliveryStats) addFiltered(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filtered += uint64(n)
}

func (s *deliveryStats) setInFlight(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight = n
}

func (s *deliveryStats) setStaged(events, bytes int, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged, s.stagedBytes, s.stagedSince = events, bytes, since
}

func (s *deliveryStats) setState(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != state {
		s.state, s.since = state, time.Now()
	}
}

func (s *deliveryStats) setFailed(state string, err error) {
	s.setState(state)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastError, s.lastErrorAt = deadletter.Clean(err.Error()), time.Now()
}

func (s *deliveryStats) addDelivered(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delivered += uint64(n)
}

// hasDelivered reports whether the sink has taken any event.
func (s *deliveryStats) hasDelivered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered > 0
}

func (s *deliveryStats) addDeadLetter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadLetters++
}

// status returns the stats as the status of a sink.
func (s *deliveryStats) status(sink string) SinkStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := SinkStatus{
		Sink: sink, State: s.state, Since: s.since.UTC(), Delivered: s.delivered, DeadLetters: s.deadLetters, LastError: s.lastError,
		Filtered: s.filtered, InFlight: s.inFlight, StagedEvents: s.staged, StagedBytes: s.stagedBytes,
	}
	if !s.stagedSince.IsZero() {
		at := s.stagedSince.UTC()
		out.StagedSince = &at
	}
	if !s.lastErrorAt.IsZero() {
		at := s.lastErrorAt.UTC()
		out.LastErrorAt = &at
	}
	return out
}

package status

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
)

// The states of a delivery.
const (
	Starting           = "starting"
	Idle               = "idle" // everything is sent
	Waiting            = "waiting"
	Delivering         = "delivering"
	Retrying           = "retrying"
	Throttled          = "throttled"
	Misconfigured      = "misconfigured"
	Paused             = "paused"
	NotFlushing        = "not_flushing"
	WaitingForDatabase = "waiting_for_database"
	WaitingForMatcher  = "waiting_for_matcher"
)

// States returns all values of Sink.State.
func States() []string {
	return []string{
		Starting, Idle, Waiting, Delivering, Retrying, Throttled, Misconfigured, Paused,
		NotFlushing, WaitingForDatabase, WaitingForMatcher,
	}
}

// Tracker holds the state and the counts of a delivery for its status. It
// is safe for concurrent use.
type Tracker struct {
	mu          sync.Mutex
	state       string
	since       time.Time
	failing     string // the state of the last failure, until something succeeds
	delivered   uint64
	deadLetters uint64
	filtered    uint64
	lastError   string
	lastErrorAt time.Time
	inFlight    int
	staged      int
	stagedBytes int
	stagedSince time.Time

	filtering      string // why the next events cannot be filtered; "" if they can
	filteringError string
	filteringSince time.Time
}

// AddFiltered counts events that the sink does not get.
func (s *Tracker) AddFiltered(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filtered += uint64(n)
}

// SetInFlight sets the number of batches in flight.
func (s *Tracker) SetInFlight(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight = n
}

// SetStaged sets what the sink has accepted and not committed.
func (s *Tracker) SetStaged(events, bytes int, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged, s.stagedBytes, s.stagedSince = events, bytes, since
}

// SetState sets the state. A delivery that tries again after a failure keeps the state
// of the failure until something succeeds: a call that hangs is not progress.
func (s *Tracker) SetState(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case state == Idle:
		s.failing = ""
	case state == Delivering && s.failing != "":
		state = s.failing
	}
	if s.state != state {
		s.state, s.since = state, time.Now()
	}
}

// SetFailed sets the state and the last error. The failure that comes with a dead
// letter is over: its state is delivering.
func (s *Tracker) SetFailed(state string, err error) {
	s.mu.Lock()
	s.failing = state
	if state == Delivering {
		s.failing = ""
	}
	s.lastError, s.lastErrorAt = deadletter.Clean(err.Error()), time.Now()
	s.mu.Unlock()
	s.SetState(state)
}

// SetFiltering sets the state of a delivery whose next events cannot be filtered, or ends
// it with "". It is apart from the state of the batches that are sent meanwhile. changed
// reports whether the state was another one.
func (s *Tracker) SetFiltering(state string, err error) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if changed = s.filtering != state; changed {
		s.filtering, s.filteringSince = state, time.Now()
	}
	if err != nil {
		s.filteringError = deadletter.Clean(err.Error())
		s.lastError, s.lastErrorAt = s.filteringError, time.Now()
	}
	return changed
}

// AddDelivered counts events that the sink has committed.
func (s *Tracker) AddDelivered(n int) {
	s.mu.Lock()
	s.delivered += uint64(n)
	s.mu.Unlock()
	if n > 0 {
		s.SetSucceeded()
	}
}

// SetSucceeded ends the state of a failure.
func (s *Tracker) SetSucceeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing == "" {
		return
	}
	if s.state == s.failing {
		s.state, s.since = Delivering, time.Now()
	}
	s.failing = ""
}

// Delivered returns how many events the sink has committed.
func (s *Tracker) Delivered() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered
}

// AddDeadLetter counts a dead letter.
func (s *Tracker) AddDeadLetter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadLetters++
}

// Status returns the stats as the status of a sink.
func (s *Tracker) Status(sink string) Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Sink{
		Sink: sink, State: s.state, Since: s.since.UTC(), Delivered: s.delivered, DeadLetters: s.deadLetters, LastError: s.lastError,
		Filtered: s.filtered, InFlight: s.inFlight, StagedEvents: s.staged, StagedBytes: s.stagedBytes,
	}
	if s.filtering != "" && !out.Blocked() {
		out.State, out.Since, out.LastError = s.filtering, s.filteringSince.UTC(), s.filteringError
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

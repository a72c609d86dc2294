package delivery

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
)

// The states of a delivery.
const (
	stateStarting           = "starting"
	stateIdle               = "idle" // everything is sent
	stateWaiting            = "waiting"
	stateDelivering         = "delivering"
	stateRetrying           = "retrying"
	stateThrottled          = "throttled"
	stateMisconfigured      = "misconfigured"
	statePaused             = "paused"
	stateNotFlushing        = "not_flushing"
	stateWaitingForDatabase = "waiting_for_database"
	stateWaitingForMatcher  = "waiting_for_matcher"
)

// States returns all values of SinkStatus.State.
func States() []string {
	return []string{
		stateStarting, stateIdle, stateWaiting, stateDelivering, stateRetrying, stateThrottled, stateMisconfigured, statePaused,
		stateNotFlushing, stateWaitingForDatabase, stateWaitingForMatcher,
	}
}

// deliveryStats holds the state and the counts of a delivery for its status. It
// is safe for concurrent use.
type deliveryStats struct {
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

// setState sets the state. A delivery that tries again after a failure keeps the state
// of the failure until something succeeds: a call that hangs is not progress.
func (s *deliveryStats) setState(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case state == stateIdle:
		s.failing = ""
	case state == stateDelivering && s.failing != "":
		state = s.failing
	}
	if s.state != state {
		s.state, s.since = state, time.Now()
	}
}

// setFailed sets the state and the last error. The failure that comes with a dead
// letter is over: its state is delivering.
func (s *deliveryStats) setFailed(state string, err error) {
	s.mu.Lock()
	s.failing = state
	if state == stateDelivering {
		s.failing = ""
	}
	s.lastError, s.lastErrorAt = deadletter.Clean(err.Error()), time.Now()
	s.mu.Unlock()
	s.setState(state)
}

// setFiltering sets the state of a delivery whose next events cannot be filtered, or ends
// it with "". It is apart from the state of the batches that are sent meanwhile. changed
// reports whether the state was another one.
func (s *deliveryStats) setFiltering(state string, err error) (changed bool) {
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

func (s *deliveryStats) addDelivered(n int) {
	s.mu.Lock()
	s.delivered += uint64(n)
	s.mu.Unlock()
	if n > 0 {
		s.setSucceeded()
	}
}

// setSucceeded ends the state of a failure.
func (s *deliveryStats) setSucceeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing == "" {
		return
	}
	if s.state == s.failing {
		s.state, s.since = stateDelivering, time.Now()
	}
	s.failing = ""
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

package notifications

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// lanes tracks which destinations are served, paused or limited by the rate of
// their notifier. It is safe for concurrent use.
type lanes struct {
	now func() time.Time

	mu     sync.Mutex
	busy   map[lane]bool
	paused map[lane]time.Time // no message before
	next   map[lane]time.Time // the next send that the notifier's rate permits
}

func newLanes(now func() time.Time) *lanes {
	return &lanes{now: now, busy: map[lane]bool{}, paused: map[lane]time.Time{}, next: map[lane]time.Time{}}
}

// enter reports whether the destination may be served now, and marks it busy.
// It is false for a busy or paused destination, or at the limit of lanes.
func (s *lanes) enter(l lane, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[l] || len(s.busy) >= maxLanes || now.Before(s.paused[l]) {
		return false
	}
	delete(s.paused, l)
	s.busy[l] = true
	return true
}

func (s *lanes) leave(l lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, l)
}

// pause pauses a destination and returns the end of the pause.
func (s *lanes) pause(l lane, d time.Duration) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.now().Add(min(max(d, 100*time.Millisecond), time.Hour))
	if until.After(s.paused[l]) {
		s.paused[l] = until
	}
	return until
}

func (s *lanes) isPaused(l lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Before(s.paused[l])
}

// reserve reserves the next send within the notifier's rate and returns the
// time until it.
func (s *lanes) reserve(l lane, p sdk.NotifierProperties) time.Duration {
	if p.PerSecond <= 0 {
		return 0
	}
	if !p.PerDestination {
		l.Destination = ""
	}
	each := time.Duration(float64(time.Second) / p.PerSecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	// Unused sends accumulate, up to Burst.
	next := s.next[l]
	if earliest := now.Add(-each * time.Duration(max(p.Burst-1, 0))); next.Before(earliest) {
		next = earliest
	}
	s.next[l] = next.Add(each)
	return max(next.Sub(now), 0)
}

package cursors

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/journal"
)

// recentAge is how old the cursors of Recent may be.
const recentAge = 250 * time.Millisecond

// recent has the newest list of the cursors of a log. Its methods are safe for concurrent
// use.
type recent struct {
	reading sync.Mutex // one at a time reads; the others use its list

	mu      sync.Mutex
	log     string
	all     []Cursor
	at      time.Time // zero: none
	changes int
}

// Recent is List for statistics: the list is at most 250 ms old, but for what this Store
// has changed since, also in transactions that have not ended. It must not be changed. So the statistics of many partitions
// cost one statement.
func (s *Store) Recent(ctx context.Context, log string) ([]Cursor, error) {
	s.recent.reading.Lock()
	defer s.recent.reading.Unlock()
	all, changes, ok := s.recent.get(log)
	if ok {
		return all, nil
	}
	at := time.Now()
	all, err := s.List(ctx, log)
	if err == nil {
		s.recent.set(log, all, at, changes)
	}
	return all, err
}

// get returns the list if it is new enough, and the number of changes so far.
func (r *recent) get(log string) (all []Cursor, changes int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all, r.changes, r.log == log && !r.at.IsZero() && time.Since(r.at) < recentAge
}

// set keeps a list, unless a cursor has changed since it was asked for.
func (r *recent) set(log string, all []Cursor, at time.Time, changes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes == changes {
		r.log, r.all, r.at = log, all, at
	}
}

// move takes over a commit of this process.
func (r *recent) move(k Key, token int64, p journal.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	if r.log != k.Log {
		return
	}
	r.all = slices.Clone(r.all)
	for i, c := range r.all {
		if c.Partition == k.Partition && c.Reader == k.Reader {
			r.all[i].Token, r.all[i].Position = token, p
		}
	}
}

// forget makes the next Recent read the list.
func (r *recent) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.at = time.Time{}
}

package journal

import (
	"maps"
	"math"
	"sync"
)

// extent says which records there are. All its numbers are of committed
// records.
type extent struct {
	first    uint64 // the oldest record kept; last+1 when none is
	firstAt  int64  // Unix microseconds
	firstPos int64  // bytes of data ever appended before first
	last     uint64
	lastAt   int64
	endPos   int64 // bytes of data ever appended
}

func (e extent) empty() bool    { return e.first > e.last }
func (e extent) records() int64 { return int64(e.last - e.first + 1) }
func (e extent) bytes() int64   { return e.endPos - e.firstPos }

// add is e with b at its end.
func (e extent) add(b block) extent {
	if e.empty() {
		e.first, e.firstAt, e.firstPos = b.seq, b.at, b.pos
	}
	e.last, e.lastAt, e.endPos = b.last(), b.at, b.pos+int64(b.payload())
	return e
}

// cursor is what is known of one reader.
type cursor struct {
	position Position
	dropped  int64
}

// readers are the cursors by name.
type readers map[string]cursor

// done is the newest record that every reader has done: the largest number
// when there is no reader.
func (r readers) done() uint64 {
	least := uint64(math.MaxUint64)
	for _, c := range r {
		least = min(least, c.position.Seq)
	}
	return least
}

// ledger is what the file says, in memory: the writer replaces it after each
// commit, everybody reads it.
type ledger struct {
	mu      sync.RWMutex
	extent  extent
	readers readers
	free    int64 // bytes in the file that hold nothing
}

func (l *ledger) now() (extent, readers) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.extent, l.readers
}

func (l *ledger) span() extent {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.extent
}

func (l *ledger) reusable() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.free
}

func (l *ledger) setReusable(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = bytes
}

// publish makes the outcome of a group known. The map is replaced, never
// changed, so whoever holds the old one may go on reading it.
func (l *ledger) publish(e extent, changed map[string]*cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extent = e
	if len(changed) == 0 {
		return
	}
	next := maps.Clone(l.readers)
	for name, c := range changed {
		if c == nil {
			delete(next, name)
		} else {
			next[name] = *c
		}
	}
	l.readers = next
}

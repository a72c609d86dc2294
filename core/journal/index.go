package journal

import (
	"maps"
	"math"
	"sync"
)

// extent is the range of committed records that are kept.
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

// add returns e with b appended.
func (e extent) add(b block) extent {
	if e.empty() {
		e.first, e.firstAt, e.firstPos = b.seq, b.at, b.pos
	}
	e.last, e.lastAt, e.endPos = b.last(), b.at, b.pos+int64(b.payload())
	return e
}

// cursor is the state of one reader.
type cursor struct {
	position Position
	dropped  int64
}

// readers are the cursors by name.
type readers map[string]cursor

// done returns the newest record that all readers have done, the largest number
// without readers.
func (r readers) done() uint64 {
	least := uint64(math.MaxUint64)
	for _, c := range r {
		least = min(least, c.position.Seq)
	}
	return least
}

// index is the committed state of the file in memory. The writer replaces it
// after each commit; all goroutines read it.
type index struct {
	mu      sync.RWMutex
	extent  extent
	readers readers
	free    int64 // bytes in the file that hold nothing
}

func (l *index) now() (extent, readers) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.extent, l.readers
}

func (l *index) span() extent {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.extent
}

func (l *index) reusable() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.free
}

func (l *index) setReusable(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = bytes
}

// publish applies the outcome of a group. The map is replaced, never changed, so
// that readers of the old map need no lock.
func (l *index) publish(e extent, changed map[string]*cursor) {
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

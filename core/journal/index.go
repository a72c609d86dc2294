package journal

import (
	"maps"
	"math"
	"sync"

	"github.com/guidonhq/guidon/core/journal/format"
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
func (e extent) add(b format.Block) extent {
	if e.empty() {
		e.first, e.firstAt, e.firstPos = b.Seq, b.At, b.Pos
	}
	e.last, e.lastAt, e.endPos = b.Last(), b.At, b.Pos+int64(b.Payload())
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

// firstNeeded returns first, or the number of the oldest record that a reader
// still needs, if that is earlier: nothing trims it, so that it was lost.
func (r readers) firstNeeded(first uint64) uint64 {
	for _, c := range r {
		if c.dropped == 0 {
			first = min(first, c.position.Seq+1)
		}
	}
	return first
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

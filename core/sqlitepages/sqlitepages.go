// Package sqlitepages holds the cached pages of SQLite in memory of their size.
//
// SQLite allocates about 4,370 bytes for each page of 4 KiB that it caches: the page and
// its header. The allocator of modernc.org/libc rounds that up to 8,192 bytes, so that a
// cache takes twice its configured memory. This package serves allocations of this size
// and passes all others to that allocator, also pages of other sizes.
//
// Pages lie in slots of chunks of 1 MiB in one reserved range of addresses. A new page
// goes to the first chunk with a free slot; a chunk without pages returns its memory to
// the system. When the range is full or cannot be reserved, pages come from the other
// allocator. Whether a pointer belongs to this package follows from its address.
//
// The import of the package is enough: SQLite accepts an allocator only before the
// first file is opened. Only Linux has it; other systems keep the allocator of libc.
package sqlitepages

import (
	"sync"
	"sync/atomic"
)

const (
	slotBytes = 4416 // the 4,368 bytes of a page of 4 KiB, in whole cache lines
	minBytes  = 4096 // smaller allocations are no pages
	chunkBits = 20
	slots     = (1 << chunkBits) / slotBytes
	maxChunks = 256
)

// arena hands out slots. It is safe for concurrent use.
type arena struct {
	base    atomic.Uintptr // 0 before the first page and without a range
	mu      sync.Mutex
	failed  bool // the range cannot be reserved
	first   int  // no chunk before this one has a free slot
	inUse   int  // slots that hold a page
	chunks  [maxChunks]chunk
	reserve func(bytes int) (uintptr, error)
	discard func(address uintptr, bytes int) // returns memory to the system
}

// chunk is the state of 1 MiB of the range.
type chunk struct {
	used    int
	touched int     // slots that were used since the memory was returned
	free    uintptr // the first free slot before touched; each holds the address of the next
}

// alloc returns a slot, 0 if there is none.
func (a *arena) alloc() uintptr {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.base.Load() == 0 && !a.reserveRange() {
		return 0
	}
	for ; a.first < maxChunks; a.first++ {
		c := &a.chunks[a.first]
		if c.used == slots {
			continue
		}
		c.used++
		a.inUse++
		if p := c.free; p != 0 {
			c.free = *(*uintptr)(pointer(p))
			return p
		}
		c.touched++
		return a.base.Load() + uintptr(a.first)<<chunkBits + uintptr(c.touched-1)*slotBytes
	}
	return 0
}

func (a *arena) reserveRange() bool {
	if a.failed {
		return false
	}
	base, err := a.reserve(maxChunks << chunkBits)
	if err != nil {
		a.failed = true
		return false
	}
	a.base.Store(base)
	return true
}

// owns reports whether p is a slot. The range never changes once a slot exists.
func (a *arena) owns(p uintptr) bool {
	base := a.base.Load()
	return base != 0 && p-base < maxChunks<<chunkBits
}

// release frees a slot.
func (a *arena) release(p uintptr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	base := a.base.Load()
	n := int((p - base) >> chunkBits)
	c := &a.chunks[n]
	a.first = min(a.first, n)
	a.inUse--
	if c.used--; c.used > 0 {
		*(*uintptr)(pointer(p)) = c.free
		c.free = p
		return
	}
	*c = chunk{}
	a.discard(base+uintptr(n)<<chunkBits, 1<<chunkBits)
}

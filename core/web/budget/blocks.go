package budget

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Sizes of blocks. A block has a multiple of smallBlockStep, one of more than
// largeBlockStep a multiple of that, so that few sizes occur and blocks can be
// reused.
const (
	smallBlockStep = 2 * largeBuffer
	largeBlockStep = 4 << 20
)

// blockSize returns the size of the smallest block of at least size bytes.
func blockSize(size int) int {
	step := smallBlockStep
	if size > largeBlockStep {
		step = largeBlockStep
	}
	return (size + step - 1) / step * step
}

// blocks keeps the memory of large buffers for the next large requests. Fresh
// megabytes cost more than the work on them: the runtime zeroes them, the system
// maps their pages, and the garbage collector runs once more. The blocks use what
// requests leave of the budget, and Budget.reclaim frees them after a peak. It is
// safe for concurrent use.
type blocks struct {
	mu    sync.Mutex
	free  [][]byte
	bytes atomic.Int64 // of free
}

// get returns an empty block of size bytes, a result of blockSize; nil without
// one. Its capacity holds the bytes of an earlier request.
func (s *blocks) get(size int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.free) - 1; i >= 0; i-- {
		if cap(s.free[i]) == size {
			return s.take(i)
		}
	}
	return nil
}

// shrink frees the oldest blocks until the others fit into room.
func (s *blocks) shrink(room int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.bytes.Load() > room && len(s.free) > 0 {
		_ = s.take(0)
	}
}

// take removes a block and keeps the order of the others: the oldest is the first.
func (s *blocks) take(i int) []byte {
	b := s.free[i]
	s.free = slices.Delete(s.free, i, i+1)
	s.bytes.Add(-int64(cap(b)))
	return b
}

// put keeps a block of get and frees the oldest ones until all fit into room. So the
// sizes that requests need now replace those of earlier ones.
func (s *blocks) put(b []byte, room int64) {
	if int64(cap(b)) > room {
		return
	}
	s.mu.Lock()
	s.bytes.Add(int64(cap(b)))
	s.free = append(s.free, b[:0])
	s.mu.Unlock()
	s.shrink(room)
}

// block returns an empty block of size bytes, which the account has paid for.
func (a *Account) block(size int) []byte {
	if a != nil && a.budget != nil {
		if b := a.budget.blocks.get(size); b != nil {
			return b
		}
	}
	return make([]byte, 0, size)
}

// keepBlock makes a block available to later requests. The account has returned
// the bytes.
func (a *Account) keepBlock(b []byte) {
	if a != nil && a.budget != nil {
		a.budget.blocks.put(b, a.budget.room())
	}
}

// room returns the bytes that blocks may have: what large requests leave of their
// part of the budget, and a quarter of the budget in any case, so that one request
// after the other finds the blocks that it needs while others wait.
func (b *Budget) room() int64 { return max(b.large-b.used.Load(), b.limit/4) }

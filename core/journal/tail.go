package journal

import (
	"sync"

	"github.com/guidonhq/guidon/core/journal/format"
)

// tail caches the newest blocks in memory, for readers that keep up.
type tail struct {
	limit int

	mu     sync.RWMutex
	blocks []format.Block // ascending and without a gap
	bytes  int
}

// add appends b and evicts the oldest blocks over the limit.
func (t *tail) add(b format.Block) {
	if t.limit == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks = append(t.blocks, b)
	t.bytes += len(b.Data)
	n := 0
	for ; t.bytes > t.limit; n++ {
		t.bytes -= len(t.blocks[n].Data)
		t.blocks[n] = format.Block{}
	}
	t.blocks = t.blocks[n:]
}

// selectFrom lets p take from the blocks after p.after. It reports false, and p took
// nothing, when an older block than the tail has is needed.
func (t *tail) selectFrom(p *selector) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.blocks) == 0 || p.after+1 < t.blocks[0].Seq {
		return false
	}
	for _, b := range t.blocks[t.find(p.after+1):] {
		if !p.add(b) {
			break
		}
	}
	return true
}

// find returns the index of the first block that does not end before seq.
func (t *tail) find(seq uint64) int {
	lo, hi := 0, len(t.blocks)
	for lo < hi {
		mid := (lo + hi) / 2
		if t.blocks[mid].Last() < seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// broadcast wakes everyone who waits for the next group.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // nil without waiters
}

// next is closed when the bell rings next.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

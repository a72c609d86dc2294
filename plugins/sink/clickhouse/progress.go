package clickhouse

import "sync"

// progress knows up to where everything was written: batches are written side
// by side, and end in any order.
type progress struct {
	mu      sync.Mutex
	through uint64
	ahead   map[uint64]uint64 // first to last, not yet contiguous with through
}

// maxAhead is how many ranges are kept; a dropped one makes answers look
// older than they are.
const maxAhead = 1000

func (p *progress) begin(through uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.through, p.ahead = through, map[uint64]uint64{}
}

func (p *progress) wrote(first, last uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ahead) < maxAhead {
		p.ahead[first] = max(last, p.ahead[first])
	}
	for moved := true; moved; {
		moved = false
		for first, last := range p.ahead {
			if first <= p.through+1 {
				p.through = max(p.through, last)
				delete(p.ahead, first)
				moved = true
			}
		}
	}
}

func (p *progress) at() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.through
}

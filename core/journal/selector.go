package journal

import "github.com/guidonhq/guidon/core/journal/format"

// selector selects records of consecutive blocks until a limit is reached, then
// copies them.
type selector struct {
	after      uint64
	maxRecords int
	maxBytes   int
	exclusive  bool // the blocks belong to this reader alone

	ranges []recordRange
	count  int
	bytes  int
	full   bool
}

// A piece is records from to to-1 of a block.
type recordRange struct {
	block    format.Block
	from, to int
}

// add selects records of b and reports whether the limits allow more.
func (p *selector) add(b format.Block) bool {
	from := 0
	if p.after >= b.Seq {
		from = int(min(p.after-b.Seq+1, uint64(b.N)))
	}
	to := from
	for ; to < b.N; to++ {
		size := b.End(to) - b.End(to-1)
		if p.count > 0 && (p.count >= p.maxRecords || p.bytes+size > p.maxBytes) {
			p.full = true
			break
		}
		p.count++
		p.bytes += size
	}
	if to > from {
		p.ranges = append(p.ranges, recordRange{b, from, to})
	}
	return !p.full
}

// records returns the selected records with two allocations: a copy, or the data
// itself of a single block that is exclusive and selected as a whole.
func (p *selector) records() []Record {
	if p.count == 0 {
		return nil
	}
	out := make([]Record, 0, p.count)
	var slab []byte
	whole := p.exclusive && len(p.ranges) == 1 && p.count == p.ranges[0].block.N
	if !whole {
		slab = make([]byte, 0, p.bytes)
	}
	for _, k := range p.ranges {
		start := len(slab)
		base := k.block.End(k.from - 1)
		if data := k.block.Data[4*k.block.N+base : 4*k.block.N+k.block.End(k.to-1)]; whole {
			slab = data
		} else {
			slab = append(slab, data...)
		}
		at := k.block.Time()
		for i := k.from; i < k.to; i++ {
			lo, hi := start+k.block.End(i-1)-base, start+k.block.End(i)-base
			out = append(out, Record{Seq: k.block.Seq + uint64(i), At: at, Data: slab[lo:hi:hi]})
		}
	}
	return out
}

package delivery

import (
	"slices"

	"github.com/guidonhq/guidon/sdk"
)

// maxOutstanding bounds the batches that wait for the first of them to be
// settled. They are sent again after a crash.
const maxOutstanding = 256

// scheduler decides which batch is sent next. It keeps the received batches in
// order until they are settled, gives sequence numbers, keeps the order per
// distinct id, and leaves imports at most half of the window. It is for one
// goroutine and does no I/O.
type scheduler struct {
	lastSeq  uint64   // the last sequence number given
	pending  []*batch // received and not settled, up to the first that is not
	waiting  int      // pending batches that were not sent
	inFlight int
	// historicalInFlight counts the batches in flight that are of an import.
	historicalInFlight int
}

// reset drops all batches. Sequence numbers go on after lastSeq.
func (s *scheduler) reset(lastSeq uint64) { *s = scheduler{lastSeq: lastSeq} }

// hasRoom reports whether another chunk can be received. Staged batches do not
// count: only a flush settles them.
func (s *scheduler) hasRoom(window int, staged bool) bool {
	return s.waiting < window && (len(s.pending) < maxOutstanding || staged)
}

// add appends the batches of a chunk and numbers their events.
func (s *scheduler) add(r *sinkReader, c *chunk) {
	batches := c.batches
	if len(batches) == 0 {
		batches = []*batch{{state: batchState{settled: true}}} // it only moves the cursor
	}
	for _, b := range batches {
		b.place.reader, b.place.begin, b.firstSeq = r, c.begin, s.lastSeq+1
		s.lastSeq += uint64(b.count)
		b.place.through = s.lastSeq
		if !b.state.settled {
			s.waiting++
		}
	}
	// Filtered events have sequence numbers, too: the last of the chunk.
	last := batches[len(batches)-1]
	s.lastSeq += uint64(c.filtered)
	last.place.last, last.place.end, last.place.through = true, c.end, s.lastSeq
	s.pending = append(s.pending, batches...)
}

// dispatch calls send for each batch that can be sent now: within the window,
// in the order that the sink declares, such as never two batches with events of one
// distinct id at a time, and with at most half of the window for imports.
func (s *scheduler) dispatch(window int, ordering sdk.Ordering, send func(*batch)) {
	if s.waiting == 0 {
		return
	}
	busy := keysNone
	for _, b := range s.pending {
		keys := b.busyKeys(ordering)
		switch {
		case b.state.inFlight: // its other fields belong to the sender
		case b.state.settled || b.state.staged:
			continue
		case s.inFlight >= window:
			return
		case busy&keys != 0 || b.place.reader.historical && s.historicalInFlight >= max(1, window/2):
		default:
			s.begin(b)
			send(b)
		}
		busy |= keys
	}
}

func (s *scheduler) begin(b *batch) {
	b.state.inFlight = true
	s.waiting--
	s.inFlight++
	if b.place.reader.historical {
		s.historicalInFlight++
	}
}

// finish records that a batch is no longer in flight.
func (s *scheduler) finish(b *batch) {
	b.state.inFlight = false
	s.inFlight--
	if b.place.reader.historical {
		s.historicalInFlight--
	}
}

// advance removes the settled batches up to the first that is not and moves the
// cursors of their readers. It returns the sequence number up to which everything
// is settled; false if that is unchanged.
func (s *scheduler) advance() (through uint64, ok bool) {
	n := 0
	for ; n < len(s.pending) && s.pending[n].state.settled; n++ {
		if p := &s.pending[n].place; p.last {
			at := p.end
			at.Count = p.through
			p.reader.commit.MoveTo(at)
		}
	}
	if n == 0 {
		return 0, false
	}
	through = s.pending[n-1].place.through
	clear(s.pending[:n])
	s.pending = s.pending[n:]
	return through, true
}

// holds reports whether a batch of the reader is pending.
func (s *scheduler) holds(r *sinkReader) bool {
	return slices.ContainsFunc(s.pending, func(b *batch) bool { return b.place.reader == r })
}

// firstStaged returns the first pending batch if it is staged, else nil.
func (s *scheduler) firstStaged() *batch {
	if len(s.pending) == 0 || s.pending[0].state.inFlight || !s.pending[0].state.staged {
		return nil
	}
	return s.pending[0]
}

// lastStagedSeq returns the highest sequence number that is staged, or 0.
func (s *scheduler) lastStagedSeq() (seq uint64) {
	for _, b := range s.pending {
		if !b.state.inFlight && b.state.staged {
			seq = max(seq, b.state.stagedTo)
		}
	}
	return seq
}

// settleStaged marks the staged batches up to a sequence number as settled. It
// returns the number of their events and whether staged batches remain.
func (s *scheduler) settleStaged(through uint64) (events int, remain bool) {
	for _, b := range s.pending {
		switch {
		case !b.state.staged || b.state.settled:
		case b.state.stagedTo <= through:
			b.state.settled = true
			events += b.count
		default:
			remain = true
		}
	}
	return events, remain
}

// find returns the released batch that holds a sequence number, or nil.
func (s *scheduler) find(seq uint64) *batch {
	for _, b := range s.pending {
		if b.count > 0 && seq >= b.firstSeq && seq <= b.lastSeq() && b.ids != nil {
			return b
		}
	}
	return nil
}

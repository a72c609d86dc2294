package delivery

import "context"

// Erased knows the persons that were erased after their events were accepted.
// core/ingestion/erasure implements it.
type Erased interface {
	// WaitRecovered returns when the erasures of the journal are known; false when
	// ctx ends first.
	WaitRecovered(ctx context.Context) bool
	// Any reports whether any event may be erased.
	Any() bool
	// Dropped reports whether the event of a journal record was erased.
	Dropped(projectID int64, distinctID string, seq uint64) bool
}

// skipErased is the label value of the metric for events of erased persons.
const skipErased = "erased"

// RespectErasures makes deliveries leave out the events of persons that were erased
// after the events were accepted. It must be called before Start.
func (d *Service) RespectErasures(e Erased) { d.erased = e }

// isErased reports whether a record of b was erased.
func (s *sender) isErased(b *batch, i int) bool {
	ev := &b.events[i]
	return s.erased.Dropped(ev.ProjectID, ev.DistinctID, b.seqs[i])
}

// withoutErased returns the indexes of the records from index from up to to that were not
// erased; all is true if none was. Without erasures it looks at no record.
func (s *sender) withoutErased(b *batch, from, to int) (kept []int, all bool) {
	if s.erased == nil || !s.erased.Any() {
		return nil, true
	}
	all = true
	for i := from; i < to; i++ {
		switch erased := s.isErased(b, i); {
		case erased && all:
			all = false
			for k := from; k < i; k++ {
				kept = append(kept, k)
			}
		case !erased && !all:
			kept = append(kept, i)
		}
	}
	return kept, all
}

// countErased counts records that are left out.
func (s *sender) countErased(n int) {
	s.stats.addFiltered(n)
	s.metrics.filtered.WithLabelValues(s.name(), skipErased).Add(float64(n))
}

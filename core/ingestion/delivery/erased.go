package delivery

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/retry"
)

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

// ErasedLoader is an Erased that reads the erasures before each call of a sink.
type ErasedLoader interface {
	Erased
	// LoadErased returns the erasures that concern records behind a number.
	LoadErased(ctx context.Context, after uint64) (Erased, error)
}

// loadErased returns the erasures that concern records from a number on. It waits for the
// database, and fails with errStopped only.
func (s *sender) loadErased(first uint64) (Erased, error) {
	l, ok := s.erased.(ErasedLoader)
	if !ok {
		return s.erased, nil
	}
	var out Erased
	ok = retry.Until(s.drainCtx, s.backoff(), func() (err error) {
		ctx, cancel := context.WithTimeout(s.drainCtx, s.cfg.Timeout)
		defer cancel()
		out, err = l.LoadErased(ctx, first-1)
		return err
	}, func(err error) { s.stats.SetFailed(status.WaitingForDatabase, err) })
	if !ok {
		return nil, errStopped
	}
	return out, nil
}

// skipErased is the label value of the metric for events of erased persons.
const skipErased = "erased"

// RespectErasures makes deliveries leave out the events of persons that were erased
// after the events were accepted. It must be called before Start.
func (d *Service) RespectErasures(e Erased) { d.erased = e }

// withoutSkipped returns the indexes of the records from index from up to to that are
// sent, and counts those that were erased. An event that has crashed the plugin and is
// a dead letter is not sent either: read again with staged events that the crash has
// lost, it would crash the plugin for ever. all is true if every record is sent.
func (s *sender) withoutSkipped(b *batch, from, to int) (kept []int, all bool, err error) {
	known, err := s.loadErased(b.seqs[from])
	if err != nil {
		return nil, false, err
	}
	erasures, crashed := known != nil && known.Any(), s.crashed.Load()
	if !erasures && crashed == nil {
		return nil, true, nil
	}
	erased := 0
	for i := from; i < to; i++ {
		ev := &b.events[i]
		switch {
		case erasures && known.Dropped(ev.ProjectID, ev.DistinctID, b.seqs[i]):
			erased++
		case crashed == nil || !slices.Contains(*crashed, eventKey{ev.ProjectID, ev.UUID}):
			kept = append(kept, i)
		}
	}
	s.countErased(erased)
	return kept, len(kept) == to-from, nil
}

// countErased counts records that are left out.
func (s *sender) countErased(n int) {
	s.stats.AddFiltered(n)
	s.metrics.filtered.WithLabelValues(s.name(), skipErased).Add(float64(n))
}

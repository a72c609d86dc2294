package status

import (
	"slices"
	"time"
)

// order has the states, the one that needs attention most last.
var order = []string{
	"", Idle, Delivering, Starting, Waiting, Retrying, Throttled, WaitingForMatcher, WaitingForDatabase, NotFlushing, Misconfigured, Paused,
}

// AddPartition adds the state of a partition to the sum s. here is true for a partition
// that this server owns.
func (s *Sink) AddPartition(number int, p Sink, here bool) {
	s.Partitions = append(s.Partitions, Partition{
		Partition: number, State: p.State, LastError: p.LastError, CommittedThrough: p.CommittedThrough,
		LagRecords: p.LagRecords, LagBytes: p.LagBytes, OldestAt: p.OldestAt,
	})
	s.LagRecords, s.LagBytes = s.LagRecords+p.LagRecords, s.LagBytes+p.LagBytes
	s.OldestAt = earlier(s.OldestAt, p.OldestAt)
	if p.Historical != nil {
		h := HistoricalLag{}
		if s.Historical != nil {
			h = *s.Historical
		}
		s.Historical = &HistoricalLag{
			h.LagRecords + p.Historical.LagRecords, h.LagBytes + p.Historical.LagBytes, earlier(h.OldestAt, p.Historical.OldestAt),
		}
	}
	if !here {
		return
	}
	if slices.Index(order, p.State) > slices.Index(order, s.State) {
		s.State, s.Since, s.Paused = p.State, p.Since, p.Paused
	}
	s.Delivered, s.DeadLetters, s.Filtered = s.Delivered+p.Delivered, s.DeadLetters+p.DeadLetters, s.Filtered+p.Filtered
	s.InFlight, s.Window = s.InFlight+p.InFlight, s.Window+p.Window
	s.StagedEvents, s.StagedBytes = s.StagedEvents+p.StagedEvents, s.StagedBytes+p.StagedBytes
	s.StagedSince = earlier(s.StagedSince, p.StagedSince)
	if p.LastErrorAt != nil && (s.LastErrorAt == nil || p.LastErrorAt.After(*s.LastErrorAt)) {
		s.LastError, s.LastErrorAt = p.LastError, p.LastErrorAt
	}
}

// earlier returns the earlier of two times of which nil is none.
func earlier(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

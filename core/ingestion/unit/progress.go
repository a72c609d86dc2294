package unit

import "github.com/guidonhq/guidon/core/ingestion/pipeline"

// PartitionProgress is the progress of a partition that this node owns.
type PartitionProgress struct {
	Partition  int               `json:"partition"`
	Live       pipeline.Progress `json:"live"`
	Historical pipeline.Progress `json:"historical"`
}

// Partitions returns the progress of each partition that this node owns, in order.
func (s *Set) Partitions() []PartitionProgress {
	out := []PartitionProgress{}
	for _, u := range s.Units() {
		out = append(out, PartitionProgress{u.number, u.worker.Progress(), u.worker.HistoricalProgress()})
	}
	return out
}

// Progress returns the progress of the live lanes of all units together.
func (s *Set) Progress() pipeline.Progress { return s.sum((*pipeline.Worker).Progress) }

// HistoricalProgress returns the progress of the lanes of imports together.
func (s *Set) HistoricalProgress() pipeline.Progress {
	return s.sum((*pipeline.Worker).HistoricalProgress)
}

// sum adds the backlogs and rates of the units. The time left is the longest one, and
// unknown if it is unknown for a unit with a backlog.
func (s *Set) sum(of func(*pipeline.Worker) pipeline.Progress) pipeline.Progress {
	out := pipeline.Progress{State: pipeline.Current}
	unknown := false
	for _, u := range s.Units() {
		p := of(u.worker)
		out.RecordsBehind += p.RecordsBehind
		out.BytesBehind += p.BytesBehind
		out.RecordsPerSecond += p.RecordsPerSecond
		out.EventsPerSecond += p.EventsPerSecond
		if rank(p.State) > rank(out.State) {
			out.State, out.Waiting = p.State, p.Waiting
		}
		if p.OldestAt != nil && (out.OldestAt == nil || p.OldestAt.Before(*out.OldestAt)) {
			out.OldestAt = p.OldestAt
		}
		switch {
		case p.SecondsLeft == nil:
			unknown = unknown || p.RecordsBehind > 0
		case out.SecondsLeft == nil || *out.SecondsLeft < *p.SecondsLeft:
			out.SecondsLeft = p.SecondsLeft
		}
	}
	if unknown {
		out.SecondsLeft = nil
	}
	return out
}

// rank orders states by how much they need attention.
func rank(state string) int {
	switch state {
	case pipeline.Waiting:
		return 2
	case pipeline.CatchingUp:
		return 1
	}
	return 0
}

package unit

import "github.com/guidonhq/guidon/core/ingestion/pipeline"

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

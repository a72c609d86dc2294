// Package status has the state of deliveries to sinks: a Tracker for each delivery, and
// Sink, which operators see.
package status

import (
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/pause"
	"github.com/guidonhq/guidon/core/journal"
)

// Sink is the state of the delivery to a sink. Counts are since the start
// of the process.
type Sink struct {
	Sink string `json:"sink"`
	// State is one of States.
	State       string       `json:"state"`
	Since       time.Time    `json:"since"`
	Paused      *pause.Pause `json:"paused,omitempty"`
	Delivered   uint64       `json:"delivered"`
	DeadLetters uint64       `json:"dead_letters"`
	Filtered    uint64       `json:"filtered"` // excluded by the sink's configuration
	LastError   string       `json:"last_error,omitempty"`
	LastErrorAt *time.Time   `json:"last_error_at,omitempty"`
	// InFlight is the number of batches in flight, Window its limit.
	InFlight int `json:"in_flight"`
	Window   int `json:"window"`
	// StagedEvents were accepted by the sink and are not committed.
	StagedEvents int        `json:"staged_events"`
	StagedBytes  int        `json:"staged_bytes"`
	StagedSince  *time.Time `json:"staged_since,omitempty"`
	// CommittedThrough is the sequence number up to which everything is committed. With a
	// log in partitions each partition has its own, and this one is 0.
	CommittedThrough uint64 `json:"committed_through"`
	// LagRecords is the number of requests behind, OldestAt the age of the oldest.
	LagRecords int64      `json:"lag_records"`
	LagBytes   int64      `json:"lag_bytes"`
	OldestAt   *time.Time `json:"oldest_at,omitempty"`
	// Historical is the lag of an import, while there is one.
	Historical *HistoricalLag `json:"historical,omitempty"`
	// Partitions are those of a shared log. The lag is the sum of all, the state is the
	// worst one of those that this server owns, and it has delivered what is counted.
	Partitions []Partition `json:"partitions,omitempty"`
}

// Partition is the state of the delivery of a partition to a sink.
type Partition struct {
	Partition int `json:"partition"`
	// State is "" for a partition that another server owns.
	State            string     `json:"state,omitempty"`
	LastError        string     `json:"last_error,omitempty"`
	CommittedThrough uint64     `json:"committed_through"`
	LagRecords       int64      `json:"lag_records"`
	LagBytes         int64      `json:"lag_bytes"`
	OldestAt         *time.Time `json:"oldest_at,omitempty"`
}

// Blocked reports whether the sink makes no progress.
func (s *Sink) Blocked() bool {
	switch s.State {
	case Idle, Delivering:
		return false
	}
	return true
}

// HistoricalLag is the lag of an import. It counts all requests of the section of
// the journal that is read for imports.
type HistoricalLag struct {
	LagRecords int64      `json:"lag_records"`
	LagBytes   int64      `json:"lag_bytes"`
	OldestAt   *time.Time `json:"oldest_at,omitempty"`
}

// HistoricalPrefix and the name of the live cursor name the cursor of imports.
const HistoricalPrefix = "historical/"

// HistoricalReader returns the name of the journal reader for the imports of a
// sink.
func HistoricalReader(sink string) string { return HistoricalPrefix + deadletter.SourceSink + sink }

// AddLag fills in the lag of the sink's readers.
func (s *Sink) AddLag(readers []journal.ReaderStats) {
	for _, r := range readers {
		var oldest *time.Time
		if !r.OldestAt.IsZero() {
			oldest = &r.OldestAt
		}
		switch r.Name {
		case deadletter.SourceSink + s.Sink:
			s.LagRecords, s.LagBytes, s.OldestAt = r.Lag, r.Bytes, oldest
			s.CommittedThrough = max(s.CommittedThrough, r.Position.Count)
		case HistoricalReader(s.Sink):
			s.Historical = &HistoricalLag{r.Lag, r.Bytes, oldest}
			s.CommittedThrough = max(s.CommittedThrough, r.Position.Count)
		}
	}
}

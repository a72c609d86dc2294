package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/journal"
)

// SinkStatus is the state of the delivery to a sink. Counts are since the start
// of the process.
type SinkStatus struct {
	Sink string `json:"sink"`
	// State is one of States.
	State       string     `json:"state"`
	Since       time.Time  `json:"since"`
	Paused      *Pause     `json:"paused,omitempty"`
	Delivered   uint64     `json:"delivered"`
	DeadLetters uint64     `json:"dead_letters"`
	Filtered    uint64     `json:"filtered"` // excluded by the sink's configuration
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// InFlight is the number of batches in flight, Window its limit.
	InFlight int `json:"in_flight"`
	Window   int `json:"window"`
	// StagedEvents were accepted by the sink and are not committed.
	StagedEvents int        `json:"staged_events"`
	StagedBytes  int        `json:"staged_bytes"`
	StagedSince  *time.Time `json:"staged_since,omitempty"`
	// CommittedThrough is the sequence number up to which everything is committed.
	CommittedThrough uint64 `json:"committed_through"`
	// LagRecords is the number of requests behind, OldestAt the age of the oldest.
	LagRecords int64      `json:"lag_records"`
	LagBytes   int64      `json:"lag_bytes"`
	OldestAt   *time.Time `json:"oldest_at,omitempty"`
	// Historical is the lag of an import, while there is one.
	Historical *HistoricalLag `json:"historical,omitempty"`
}

// Blocked reports whether the sink makes no progress.
func (s *SinkStatus) Blocked() bool {
	switch s.State {
	case stateIdle, stateDelivering:
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

// HistoricalReader returns the name of the journal reader for the imports of a
// sink.
func HistoricalReader(sink string) string { return historicalPrefix + deadletter.SourceSink + sink }

// Status returns the state of every delivery, by name of the sink.
func (d *Service) Status(ctx context.Context) ([]SinkStatus, error) {
	stats, err := d.log.Stats(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []SinkStatus
	for _, name := range slices.Sorted(maps.Keys(d.running)) {
		del := d.running[name]
		s := del.stats.status(name)
		s.Window = del.sender.window.Current()
		if s.Paused, _, _ = del.sender.gate.Get(); s.Paused != nil {
			s.State, s.Since = statePaused, s.Paused.At
		}
		s.addLag(stats.Readers)
		out = append(out, s)
	}
	return out, nil
}

// addLag fills in the lag of the sink's readers.
func (s *SinkStatus) addLag(readers []journal.ReaderStats) {
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

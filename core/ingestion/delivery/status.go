package delivery

import (
	"context"
	"maps"
	"slices"

	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/journal"
)

// SinkStatus is the state of the delivery to a sink.
type SinkStatus = status.Sink

// States returns all values of SinkStatus.State.
func States() []string { return status.States() }

// HistoricalReader returns the name of the journal reader for the imports of a
// sink.
func HistoricalReader(sink string) string { return status.HistoricalReader(sink) }

// Status returns the state of every delivery, by name of the sink.
func (d *Service) Status(ctx context.Context) ([]SinkStatus, error) {
	stats, err := d.log.Stats(ctx)
	if err != nil {
		return nil, err
	}
	return d.StatusOf(stats.Readers), nil
}

// StatusOf is Status with the cursors of the log.
func (d *Service) StatusOf(readers []journal.ReaderStats) []SinkStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []SinkStatus
	for _, name := range slices.Sorted(maps.Keys(d.running)) {
		del := d.running[name]
		s := del.stats.Status(name)
		s.Window = del.sender.window.Current()
		if s.Paused, _, _ = del.sender.gate.Get(); s.Paused != nil {
			s.State, s.Since = status.Paused, s.Paused.At
		}
		s.AddLag(readers)
		out = append(out, s)
	}
	return out
}

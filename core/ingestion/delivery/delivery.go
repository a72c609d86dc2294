// Package delivery sends the events of the journal to the sinks.
//
// Each sink has a cursor in the journal and a goroutine of its own, so no sink
// waits for another, for the pipeline or, while nothing fails, for the database.
// A sink gets every event at least once, under stable uuids and batch ids, and
// the events of one distinct id in order. An event that the sink rejects for good
// becomes a dead letter.
//
// A delivery consists of parts that each have one job. The cursors read the
// journal, filter and encode. The scheduler decides which batch goes next: several
// are in flight, but never two with events of one distinct id. The sender retries,
// bisects rejected batches and isolates events that crash the plugin. Staging
// keeps count of events that the sink has accepted but not committed, and flushes
// them. A session connects the parts; when staged events are lost it ends, and the
// next one reads them again from the cursor.
//
// Imports have a cursor of their own while there are any. Live events go first.
package delivery

import (
	"context"

	"github.com/guidonhq/guidon/sdk"
)

// Sink is an instance of a sink plugin. Its methods are safe for concurrent use.
//
// A Sink may also have Resume(committedThrough uint64), which is called before
// anything else, and Session() uint64, which counts how often the plugin was
// opened: events staged in one session are lost in the next. Without Session
// nothing stays staged from one call to the next. ForgiveExits() is called when an
// event that crashed the plugin is a dead letter. Process() string names the process of
// the plugin: sinks with the same name may share one. A Sink with a delivery section of
// its own has Delivery() (settings.Delivery, error). It is called once: a sink whose
// section changes must be replaced by another Sink.
type Sink interface {
	// Name is the instance's name; it names the cursor.
	Name() string
	// Properties are the limits and the order that the sink declares.
	Properties() sdk.SinkProperties
	// Ready blocks until the sink can be called, or ctx ends.
	Ready(ctx context.Context) error
	// Write hands over a batch. An error means that the outcome is unknown.
	Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error)
	// Flush asks the sink to commit the staged events, up to a sequence number.
	Flush(ctx context.Context, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error)
}

// Sinks is the set of sinks.
type Sinks interface {
	// Sinks returns the configured sinks, in any state.
	Sinks() []Sink
	// Changed returns a channel that is closed when the set changes.
	Changed() <-chan struct{}
}

// Deliveries are the deliveries of a server to all its sinks: a Service that reads a
// journal, or the services of the partitions of a shared log (package bypartition).
type Deliveries interface {
	// Status returns the state of every delivery, by name of the sink.
	Status(ctx context.Context) ([]SinkStatus, error)
	// Pause and Resume are those of Service.
	Pause(ctx context.Context, sink, reason string) error
	Resume(ctx context.Context, sink string) error
	// Replay is that of Service.
	Replay(ctx context.Context, sink string, ev sdk.Event, seq uint64, attempt uint32) error
}

var _ Deliveries = (*Service)(nil)

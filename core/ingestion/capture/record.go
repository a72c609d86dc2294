package capture

import (
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/event"
)

// maxPooledBuffer bounds a buffer that goes back to the pool.
const maxPooledBuffer = 1 << 20

// recordBuffer is the memory of the parts of one request.
type recordBuffer struct {
	data     []byte
	parts    []eventlog.Part
	splitter *event.Splitter // nil: one partition
}

func newRecordBuffer(partitions int) *recordBuffer {
	b := &recordBuffer{parts: make([]eventlog.Part, 1)}
	if partitions > 1 {
		b.splitter = event.NewSplitter(func(projectID int64, distinctID string) int {
			return eventlog.PartitionOf(projectID, distinctID, partitions)
		})
	}
	return b
}

// encode returns the parts of a record. They are valid until the next call.
func (b *recordBuffer) encode(rec *event.Record) []eventlog.Part {
	b.parts = b.parts[:0]
	if b.splitter == nil {
		b.data = rec.Append(b.data[:0])
		b.parts = append(b.parts, eventlog.Part{Data: b.data})
		return b.parts
	}
	var parts []event.Part
	parts, b.data = b.splitter.Split(rec, b.data[:0])
	for _, p := range parts {
		b.parts = append(b.parts, eventlog.Part(p))
	}
	return b.parts
}

// reusable reports whether the buffer may go back to the pool.
func (b *recordBuffer) reusable() bool {
	kept := cap(b.data)
	if b.splitter != nil {
		kept = max(kept, b.splitter.Scratch())
	}
	return kept <= maxPooledBuffer
}

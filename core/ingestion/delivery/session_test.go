package delivery

import (
	"testing"

	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// Live events go first, and an import goes on beside them: each of its chunks waits for a few live ones.
func TestLiveEventsGoFirst(t *testing.T) {
	t.Parallel()
	d := testService(t, DefaultConfig(), &scriptedSink{}).newDelivery(&scriptedSink{}, func() {}, nil)
	d.drainCtx, d.sender.drainCtx, d.cursors.drainCtx = t.Context(), t.Context(), t.Context()
	d.killCtx, d.sender.killCtx = t.Context(), t.Context()
	if !d.cursors.register() {
		t.Fatal("not registered")
	}
	must(t, d.configure())
	d.sender.gate.Set(nil)
	d.sched.reset(0)
	const live, imported = 60, 8
	d.cursors.live.chunks = make(chan *chunk, live)
	h := &sinkReader{name: "historical/sink/test", historical: true, bound: reader.NewUpperBound(0), chunks: make(chan *chunk, imported)}
	d.cursors.historical = h
	d.cursors.startCommitter(h, journal.Position{Count: 1})
	for i := range uint64(live) {
		d.cursors.live.chunks <- &chunk{end: journal.Position{Seq: 1000 + i}}
	}
	for i := range uint64(imported) {
		h.chunks <- &chunk{end: journal.Position{Seq: 1 + i}}
	}

	streak, chunks := 0, 0
	for len(d.cursors.live.chunks) > 0 {
		left := len(h.chunks)
		before := d.cursors.live.received
		d.wait(true, sdk.FlushUnspecified, nil)
		switch {
		case len(h.chunks) < left:
			if streak < liveBurst {
				t.Errorf("a chunk of the import came after %d live ones", streak)
			}
			streak = 0
			chunks++
		case d.cursors.live.received != before:
			streak++
		}
	}
	if chunks == 0 {
		t.Error("the import does not go on beside live events")
	}
	for len(h.chunks) > 0 { // alone, it does not wait
		d.wait(true, sdk.FlushUnspecified, nil)
	}
}

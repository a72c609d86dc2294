package pipeline

import (
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// A lane has reached the end of records without work when everything before them is done.
func TestLaneReachesSkippedRecords(t *testing.T) {
	t.Parallel()
	l := newLane(&Worker{logger: zap.NewNop()}, LiveReader, false)
	at := func(seq uint64, index uint32) journal.Position { return journal.Position{Seq: seq, Index: index} }
	want := func(what string, p journal.Position) {
		t.Helper()
		if got := l.reached(); got != p {
			t.Errorf("%s: %+v, want %+v", what, got, p)
		}
	}
	l.setPosition(at(3, 1))
	want("the cursor", at(3, 1))
	l.isIdle(&reader.Batch{Begin: at(5, 0), End: at(9, 0)})
	want("a batch is processed before", at(3, 1))
	l.setPosition(at(5, 0))
	want("it is done", at(9, 0))
	l.isIdle(&reader.Batch{Begin: at(5, 0), End: at(12, 0)})
	want("more records without work", at(12, 0))
	l.isIdle(&reader.Batch{Events: make([]sdk.Event, 1), Begin: at(5, 0), End: at(13, 0)})
	want("an event", at(12, 0))
	l.setPosition(at(13, 0))
	want("the event is done", at(13, 0))
}

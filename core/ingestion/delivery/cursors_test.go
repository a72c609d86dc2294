package delivery

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/delivery/window"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
)

func testCursors(t *testing.T, log *memoryLog) *cursors {
	t.Helper()
	c := &cursors{target: testTarget(&scriptedSink{}), log: log, window: &window.Window{}, drainCtx: t.Context(), sessionCtx: t.Context()}
	if !c.register() {
		t.Fatal("not registered")
	}
	return c
}

func TestCursorsRegisterTheLiveReader(t *testing.T) {
	t.Parallel()
	log := logOf()
	c := testCursors(t, log)
	if _, ok := log.readers["sink/test"]; !ok || c.historical != nil || len(log.readers) != 1 {
		t.Errorf("readers %v, historical %v", log.readers, c.historical)
	}
}

func TestCursorsContinueAnImport(t *testing.T) {
	t.Parallel()
	log := logOf()
	log.readers["historical/sink/test"] = journal.Position{Seq: 5, Count: 9}
	c := testCursors(t, log)
	if c.historical == nil || c.historical.commit.Position().Count != 9 {
		t.Fatalf("historical %+v", c.historical)
	}
	if got := c.startSession(t.Context()); got != 9 {
		t.Errorf("sequence numbers go on after %d, want 9", got)
	}
}

func TestCursorsRemoveAnImportThatNeverBegan(t *testing.T) {
	t.Parallel()
	log := logOf()
	log.readers["historical/sink/test"] = journal.Position{}
	c := testCursors(t, log)
	if _, ok := log.readers["historical/sink/test"]; ok || c.historical != nil {
		t.Errorf("readers %v", log.readers)
	}
}

func TestCursorsOpenAndCloseAnImport(t *testing.T) {
	t.Parallel()
	log := logOf()
	c := testCursors(t, log)
	last, ok := c.openHistorical(journal.Position{Seq: 3}, 0)
	if !ok || last != 1 || log.readers["historical/sink/test"] != (journal.Position{Seq: 3, Count: 1}) {
		t.Fatalf("last %d, readers %v", last, log.readers)
	}
	settled := func(*sinkReader) bool { return false }
	c.live.received = journal.Position{Seq: 7}
	if c.closeHistorical(settled); c.historical == nil {
		t.Fatal("closed before it has caught up")
	}
	c.historical.received = journal.Position{Seq: 7}
	c.live.commit.MoveTo(journal.Position{Seq: 7, Count: 1})
	if c.closeHistorical(func(*sinkReader) bool { return true }); c.historical == nil {
		t.Fatal("closed though a batch of it is pending")
	}
	for deadline := time.Now().Add(time.Minute); c.historical != nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		c.closeHistorical(settled)
	}
	if _, ok := log.readers["historical/sink/test"]; ok || c.historical != nil {
		t.Errorf("not closed: %v", log.readers)
	}
}

// What a reader has received counts for the end of an import, and for how far an import is read.
func TestReceivedChunks(t *testing.T) {
	t.Parallel()
	c := testCursors(t, logOf())
	at := func(seq uint64) journal.Position { return journal.Position{Seq: seq} }
	for _, step := range []struct {
		chunk      chunk
		lastEvents uint64
	}{
		{chunk{end: at(3)}, 0}, // records without events for this reader
		{chunk{end: at(5), batches: []*batch{{}}}, 5},
		{chunk{end: at(6)}, 5},
		{chunk{end: at(8), filtered: 1}, 8}, // its cursor is committed
	} {
		c.onReceived(c.live, &step.chunk)
		if c.live.received != step.chunk.end || c.live.lastEvents != at(step.lastEvents) {
			t.Errorf("after %+v: received through %+v, events through %+v", step.chunk, c.live.received, c.live.lastEvents)
		}
	}

	if _, ok := c.openHistorical(at(2), 7); !ok {
		t.Fatal("not opened")
	}
	c.onReceived(c.historical, &chunk{end: at(4)})
	if got := c.live.received; got != at(8) {
		t.Errorf("the live reader is at %+v after a chunk of the import", got)
	}
	readable := func(after uint64) bool {
		log := &reader.Bounded{Log: logOf(9, 10, 11), Bound: c.historical.bound}
		records, err := log.Read(t.Context(), after, 10, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return len(records) > 0
	}
	if readable(8) {
		t.Error("the import is read beyond the live reader")
	}
	c.onReceived(c.live, &chunk{end: at(10)})
	if !readable(8) || !readable(9) || readable(10) {
		t.Errorf("the import is read behind 8, 9 and 10: %v, %v, %v", readable(8), readable(9), readable(10))
	}
}

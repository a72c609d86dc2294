package delivery

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/delivery/window"
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

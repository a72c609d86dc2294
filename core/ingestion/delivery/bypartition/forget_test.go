package bypartition_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/journal"
)

// The cursor of a sink that this node does not have stays while another node has the
// sink, and is removed when none has it.
func TestSinkOfAnotherNode(t *testing.T) {
	t.Parallel()
	log := ingestiontest.NewMemoryLog(partitions)
	const reader = "sink/elsewhere"
	if err := log.Register(t.Context(), reader, journal.Begin); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, "a", dbtest.SQLite(t), log, newWarehouse(), func(c *delivery.Config) { c.ForgetAfter = 10 * time.Millisecond })
	n.mu.Lock()
	n.has = true
	n.mu.Unlock()
	stop := n.start(0, 1)
	defer stop(context.Background())
	registered := func(partition int) bool {
		stats, err := log.Partition(partition, 0).Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(stats.Readers, func(r journal.ReaderStats) bool { return r.Name == reader })
	}
	eventually(t, "the node has looked for removed sinks many times", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.asked > 20
	})
	if !registered(0) {
		t.Fatal("the cursor of the sink of another node is removed")
	}
	n.mu.Lock()
	n.has = false
	n.mu.Unlock()
	eventually(t, "the cursor of a sink that no node has is removed", func() bool { return !registered(0) })
	if !registered(1) {
		t.Error("the cursor in a partition of another node is removed")
	}
}

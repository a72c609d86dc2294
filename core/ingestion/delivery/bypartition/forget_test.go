package bypartition_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
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
	eventually(t, "a node without a partition gives replays to others", n.withheld.Load)
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
	eventually(t, "the node takes replays", func() bool { return !n.withheld.Load() })
	replay := func() error {
		return n.set.Replay(t.Context(), "elsewhere", sdk.Event{ProjectID: 1, DistinctID: "u"}, 1, 1)
	}
	if err := replay(); fault.CodeOf(err) != "sink_elsewhere" || !fault.Is(err, fault.Unavailable) {
		t.Errorf("a replay to the sink of another node: %v", err)
	}
	eventually(t, "the replay is given to the other node", n.withheld.Load)
	n.mu.Lock()
	n.has = false
	n.mu.Unlock()
	eventually(t, "the cursor of a sink that no node has is removed", func() bool { return !registered(0) })
	eventually(t, "the node takes replays again", func() bool { return !n.withheld.Load() })
	if err := replay(); !errors.Is(err, delivery.ErrNoSink) {
		t.Errorf("a replay to a sink that no node has: %v", err)
	}
	if !registered(1) {
		t.Error("the cursor in a partition of another node is removed")
	}
}

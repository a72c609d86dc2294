package bypartition_test

import (
	"errors"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/sdk"
)

// A pause holds for all partitions of a sink on all nodes, and each node shows one row a
// sink with the lag of all partitions.
func TestSinkIsPausedInAllPartitions(t *testing.T) {
	t.Parallel()
	d, log, to := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions), newWarehouse()
	a, b := newNode(t, "a", d, log, to), newNode(t, "b", d, log, to)
	var ids []string
	for p := range partitions {
		ids = append(ids, idsOf(p, 1)...)
		[]*node{a, b}[p%2].start(p, 1)
	}
	src := newSource(t, log)
	src.add(ids...)
	eventually(t, "the first events", func() bool { return to.count() == partitions })
	if err := a.set.Pause(t.Context(), "warehouse", "by hand"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node follows", func() bool { return sinkStatus(t, b).Paused != nil })
	src.add(ids...)
	eventually(t, "all partitions are behind", func() bool {
		s := sinkStatus(t, b)
		return s.LagRecords == partitions && s.State == "paused"
	})
	s := sinkStatus(t, a)
	for _, p := range s.Partitions {
		if here := p.Partition%2 == 0; (p.State != "") != here || p.LagRecords != 1 || p.CommittedThrough != 1 {
			t.Errorf("partition %+v", p)
		}
	}
	if s.Delivered != 2 || to.count() != partitions {
		t.Errorf("%d delivered, %d events", s.Delivered, to.count())
	}
	if err := b.set.Resume(t.Context(), "warehouse"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all events", func() bool { return to.count() == src.total() })
	eventually(t, "an idle sink", func() bool { s := sinkStatus(t, a); return s.State == "idle" && s.LagRecords == 0 && s.Paused == nil })
	for _, err := range []error{a.set.Pause(t.Context(), "other", ""), a.set.Replay(t.Context(), "other", sdk.Event{}, 1, 1)} {
		if !errors.Is(err, delivery.ErrNoSink) {
			t.Errorf("an unknown sink: %v", err)
		}
	}
}

// A dead letter of a partition is replayed by the node that owns the partition, and by one
// that owns another.
func TestDeadLettersOfPartitionsAreReplayed(t *testing.T) {
	t.Parallel()
	d, log, to := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions), newWarehouse()
	a, b := newNode(t, "a", d, log, to), newNode(t, "b", d, log, to)
	a.start(0, 1)
	b.start(1, 1)
	id := idsOf(1, 1)[0]
	to.reject[id] = true
	src := newSource(t, log)
	src.add(id, idsOf(0, 1)[0])
	eventually(t, "the event of the other partition", func() bool { return to.count() == 1 })
	store := deadletter.NewStore(d)
	var letters []deadletter.Entry
	eventually(t, "a dead letter", func() bool {
		var err error
		letters, err = store.After(t.Context(), 0, 10)
		return err == nil && len(letters) == 1
	})
	eventually(t, "its count", func() bool { return sinkStatus(t, b).DeadLetters == 1 && sinkStatus(t, a).DeadLetters == 0 })
	to.mu.Lock()
	to.reject[id] = false
	to.mu.Unlock()
	ev := sdk.Event{UUID: "0190b0c4-0000-7000-8000-000000000001", Name: "e1", DistinctID: id, ProjectID: 1, Timestamp: time.Now(), ReceivedAt: time.Now(), Properties: []byte("{}")}
	for i, n := range []*node{b, a} {
		before := to.writesOf("a@0")
		if err := n.set.Replay(t.Context(), "warehouse", ev, letters[0].Seq, 2); err != nil {
			t.Fatal(err)
		}
		if to.writesOf("a@0") != before+i {
			t.Errorf("replay %d: %d writes of the other partition, %d before", i, to.writesOf("a@0"), before)
		}
	}
}

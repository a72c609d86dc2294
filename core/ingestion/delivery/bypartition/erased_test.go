package bypartition_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/persons"
)

// noPersons are no persons.
type noPersons struct{}

func (noPersons) Get(context.Context, int64, string) (persons.Person, error) {
	return persons.Person{}, fault.New(fault.NotFound, "not_found", "Not found.")
}
func (noPersons) Remove(context.Context, *persons.Removal) error { return nil }

// A sink that was paused does not get the events of a person that another node has erased
// meanwhile. It gets those of others, and what the person sent later.
func TestErasedEventsAreNotDelivered(t *testing.T) {
	t.Parallel()
	d, log, to := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions), newWarehouse()
	here, there := erasure.New(d, nil, noPersons{}, zap.NewNop()), erasure.New(d, nil, noPersons{}, zap.NewNop())
	for _, e := range []*erasure.Service{here, there} {
		e.OnLog(log)
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := e.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	n := newNodeErasing(t, "a", d, log, to, here)
	n.start(3, 1)
	ids := idsOf(3, 2)
	src := newSource(t, log)
	src.add(ids...)
	eventually(t, "the first events", func() bool { return to.count() == 2 })
	if err := n.set.Pause(t.Context(), "warehouse", "by hand"); err != nil {
		t.Fatal(err)
	}
	src.add(ids...)
	if err := there.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: ids[:1], Events: true}); err != nil {
		t.Fatal(err)
	}
	to.mu.Lock()
	to.next[ids[0]]++ // the erased one does not come
	to.mu.Unlock()
	src.add(ids...)
	if err := n.set.Resume(t.Context(), "warehouse"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the later events", func() bool { return to.count() == 5 })
	eventually(t, "nothing is behind", func() bool { return sinkStatus(t, n).Partitions[3].LagRecords == 0 })
	to.mu.Lock()
	erased := to.sent[ids[0]+" e2"]
	to.mu.Unlock()
	if s := sinkStatus(t, n); erased != 0 || s.Filtered != 1 || s.Delivered != 5 {
		t.Errorf("the erased event came %d times; %d filtered, %d delivered", erased, s.Filtered, s.Delivered)
	}
	to.check(t)
}

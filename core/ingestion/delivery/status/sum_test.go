package status

import (
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/delivery/pause"
)

func TestEachStateHasARank(t *testing.T) {
	t.Parallel()
	for _, s := range States() {
		if !slices.Contains(order, s) {
			t.Errorf("%s has no rank", s)
		}
	}
}

func TestPartitionsAreAdded(t *testing.T) {
	t.Parallel()
	at := func(second int) *time.Time {
		out := time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)
		return &out
	}
	sum := Sink{Sink: "one", State: Idle}
	sum.AddPartition(0, Sink{State: Delivering, Delivered: 3, LagRecords: 4, LagBytes: 40, OldestAt: at(9), InFlight: 1, Window: 2, CommittedThrough: 7}, true)
	sum.AddPartition(1, Sink{State: Retrying, Since: *at(1), DeadLetters: 1, LastError: "refused", LastErrorAt: at(5), LagRecords: 1, OldestAt: at(3), StagedSince: at(2), StagedEvents: 6,
		Historical: &HistoricalLag{LagRecords: 8}}, true)
	sum.AddPartition(2, Sink{State: Idle, Filtered: 5, LastError: "before", LastErrorAt: at(4)}, true)
	sum.AddPartition(3, Sink{LagRecords: 100, OldestAt: at(8), Delivered: 50, Historical: &HistoricalLag{LagRecords: 2, OldestAt: at(7)}}, false)
	if sum.State != Retrying || !sum.Since.Equal(*at(1)) || sum.LastError != "refused" || !sum.Blocked() {
		t.Errorf("state %+v", sum)
	}
	if sum.LagRecords != 105 || sum.LagBytes != 40 || !sum.OldestAt.Equal(*at(3)) || sum.Historical.LagRecords != 10 || !sum.Historical.OldestAt.Equal(*at(7)) {
		t.Errorf("lag %+v", sum)
	}
	if sum.Delivered != 3 || sum.DeadLetters != 1 || sum.Filtered != 5 || sum.InFlight != 1 || sum.Window != 2 || sum.StagedEvents != 6 || !sum.StagedSince.Equal(*at(2)) {
		t.Errorf("counts %+v", sum)
	}
	if len(sum.Partitions) != 4 || sum.Partitions[0].CommittedThrough != 7 || sum.Partitions[3].State != "" || sum.Partitions[3].LagRecords != 100 || sum.CommittedThrough != 0 {
		t.Errorf("partitions %+v", sum.Partitions)
	}
	sum.AddPartition(4, Sink{State: Paused, Paused: &pause.Pause{Reason: "by hand"}}, true)
	if sum.State != Paused || sum.Paused == nil {
		t.Errorf("paused: %+v", sum)
	}
}

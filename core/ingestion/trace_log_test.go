package ingestion_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/trace"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// A trace finds an event in the partition of its distinct id, whether this node
// processes it or another one, and without knowing the distinct id.
func TestTraceInPartitions(t *testing.T) {
	t.Parallel()
	const partitions = 4
	d, log := dbtest.SQLite(t), ingestiontest.NewMemoryLog(partitions)
	stages, store := dataStages(t, d)
	e := erasure.New(d, nil, &removals{}, zap.NewNop())
	e.OnLog(log)
	workers := map[int]*pipeline.Worker{}
	for i := range partitions - 1 { // the last one belongs to a node that does nothing
		workers[i] = startPartition(t, d, log, i, e, nil, stages...)
	}
	if _, err := log.Partition(partitions-1, 7).Register(t.Context(), pipeline.LiveReader, 0); err != nil {
		t.Fatal(err)
	}
	uuidOf := func(n int) string { return fmt.Sprintf("0190a5a2-7b3c-4000-8000-%012d", n) }
	person := map[int]string{} // a distinct id in each partition
	for i := 0; len(person) < partitions; i++ {
		id := fmt.Sprint("u", i)
		person[eventlog.PartitionOf(1, id, partitions)] = id
	}
	for number := range partitions {
		rec := ingestiontest.Record(fmt.Sprintf(`[{"event":"e","distinct_id":%q,"uuid":%q}]`, person[number], uuidOf(number)))
		rec.ReceivedAt = time.Now()
		if err := log.Append(t.Context(), []eventlog.Part{{Partition: number, Data: rec.Append(nil)}}); err != nil {
			t.Fatal(err)
		}
	}
	tracer := trace.NewTracer(event.DefaultLimits(), d, nil, store).WithPartitions(log, func(n int) *pipeline.Worker { return workers[n] })
	base := webtest.Serve(t, keys(), trace.NewHTTP(tracer))
	for number := range partitions {
		want := "done"
		if workers[number] == nil {
			want = "waiting"
		} else {
			// The cursor in the log follows within a second.
			eventually(t, "the event is processed", func() bool { return workers[number].Status().Position.Seq == 1 })
		}
		got := ask(t, "GET", base+"/api/projects/1/events/"+uuidOf(number)+"/trace/", "", 200)
		place := got["accepted"].(map[string]any)
		worker, _ := got["worker"].(map[string]any)
		if place["partition"] != float64(number) || place["journal_seq"] != float64(1) || worker["state"] != want || got["distinct_id"] != person[number] {
			t.Errorf("event of partition %d: %v", number, got)
		}
	}
	ask(t, "GET", base+"/api/projects/1/events/"+uuidOf(9)+"/trace/", "", 404)
}

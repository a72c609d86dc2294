package unit_test

import (
	"bytes"
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/unit"
	"github.com/guidonhq/guidon/core/persons"
)

// BenchmarkPartitions measures the processing of 50,000 events of 1,000 persons, in
// requests of 100, by persons and the event store on PostgreSQL, by the number of
// partitions that one process has.
func BenchmarkPartitions(b *testing.B) {
	for _, n := range []int{1, 4, 12} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const requests = 500
			var took, used time.Duration
			for range b.N {
				b.StopTimer()
				d, log := dbtest.Postgres(b), ingestiontest.NewMemoryLog(n)
				fillLog(b, log, requests)
				set, s := benchNode(b, d, log)
				begin, before := time.Now(), cpuTime()
				b.StartTimer()
				for p := range n {
					s.start(p, 1)
				}
				waitForEvents(b, d, requests*100)
				b.StopTimer()
				took, used = took+time.Since(begin), used+cpuTime()-before
				if err := set.Stop(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			all := float64(b.N * requests * 100)
			b.ReportMetric(all/took.Seconds(), "events/s")
			b.ReportMetric(float64(used.Microseconds())/all, "cpu-µs/event")
		})
	}
}

func benchNode(b *testing.B, d *db.DB, log eventlog.Log) (*unit.Set, *shares) {
	b.Helper()
	p := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
	e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
	stages := []pipeline.Stage{pipeline.PersonStage(p), pipeline.EventStage(e, nil)}
	w, err := pipeline.NewWorker(pipeline.DefaultConfig(), event.DefaultLimits(), log.Partition(0, 0), d, stages, e,
		pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	s := &shares{}
	set := unit.NewSet(unit.Dependencies{Log: log, Shares: s, Worker: w, Logger: zap.NewNop()})
	if err := set.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	return set, s
}

func fillLog(b testing.TB, log eventlog.Log, requests int) {
	b.Helper()
	split := event.NewSplitter(func(project int64, id string) int { return eventlog.PartitionOf(project, id, log.Partitions()) })
	for i := range requests {
		var items bytes.Buffer
		for k := range 100 {
			items.WriteByte("[,"[min(k, 1)])
			items.Write(ingestiontest.EventBody(i*100 + k))
		}
		items.WriteByte(']')
		rec := ingestiontest.Record(items.String())
		rec.RequestID = [16]byte{byte(i), byte(i >> 8)}
		parts, _ := split.Split(&rec, nil)
		for _, p := range parts {
			if err := log.Append(b.Context(), []eventlog.Part{eventlog.Part(p)}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func waitForEvents(b testing.TB, d *db.DB, want int) {
	b.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var n int
		if err := d.Read(b.Context()).QueryRowContext(b.Context(), "SELECT count(*) FROM events").Scan(&n); err != nil {
			b.Fatal(err)
		}
		if n == want {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d events after two minutes", n, want)
		}
	}
}

// cpuTime returns the CPU time of the process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

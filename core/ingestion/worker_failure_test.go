package ingestion_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/pipeline"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// A worker that is killed between the merge of two persons and the commit leaves two
// persons; the next one merges them and stores the event once.
func TestWorkerCrashInTheMiddleOfAMerge(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		j := openJournal(t, t.TempDir())
		accept(t, j,
			`{"event":"before","distinct_id":"anon","properties":{"$set":{"a":1}}}`,
			`{"event":"before","distinct_id":"alice","properties":{"$set":{"b":1}}}`)
		people := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
		stages, known := dataStages(t, d)
		first := startWorker(t, ingestion.DefaultConfig(), j, d, known, stages...)
		eventually(t, "two people", func() bool { return first.Status().Position.Seq == 1 })
		stopWorker(t, first)

		reached := make(chan struct{}, 10)
		hangs := namedStage{"hangs", func(ctx context.Context, batch []*sdk.Event) error {
			reached <- struct{}{}
			<-ctx.Done() // the merge is written, and nothing of it will be kept
			return ctx.Err()
		}}
		accept(t, j, `{"event":"$identify","distinct_id":"alice","properties":{"$anon_distinct_id":"anon","$set":{"c":1}}}`)
		second := startWorker(t, ingestion.DefaultConfig(), j, d, known, append(stages[:2:2], hangs)...)
		<-reached
		dead, kill := context.WithCancel(t.Context())
		kill()
		if err := second.Stop(dead); err != nil {
			t.Fatal(err)
		}
		if a, b := person(t, people, "anon"), person(t, people, "alice"); a.ID == b.ID || strings.Contains(string(b.Properties), `"c":`) {
			t.Fatalf("half a merge was kept: %s and %s", a.Properties, b.Properties)
		}

		stages, known = dataStages(t, d) // as after a restart: nothing is remembered
		third := startWorker(t, ingestion.DefaultConfig(), j, d, known, stages...)
		accept(t, j, `{"event":"after","distinct_id":"anon"}`)
		eventually(t, "the rest", func() bool { return third.Status().Position.Seq == 3 })
		fresh := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
		a, b := person(t, fresh, "anon"), person(t, fresh, "alice")
		if a.ID != b.ID || len(a.DistinctIDs) != 2 {
			t.Errorf("they were not merged: %+v and %+v", a, b)
		}
		for _, want := range []string{`"a":1`, `"b":1`, `"c":1`} {
			if !strings.Contains(string(a.Properties), want) {
				t.Errorf("%s is not in %s", want, a.Properties)
			}
		}
		var stored int
		if err := d.Read(t.Context()).NewRaw("SELECT count(*) FROM events").Scan(t.Context(), &stored); err != nil || stored != 4 {
			t.Errorf("%d events are stored of 4, %v", stored, err)
		}
	})
}

func person(t *testing.T, s *persons.Service, distinctID string) persons.Person {
	t.Helper()
	p, found, err := s.ByDistinctID(t.Context(), 1, distinctID)
	if err != nil || !found {
		t.Fatalf("person of %s: %v %v", distinctID, found, err)
	}
	return p
}

// A jump of the clock changes neither the order of events nor how often they are
// processed.
func TestWorkerKeepsTheOrderWhenTheClockJumps(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	var want []string
	for i, at := range []time.Duration{0, 48 * time.Hour, -48 * time.Hour, -47 * time.Hour, 10_000 * time.Hour, 0} {
		rec := ingestiontest.Record(fmt.Sprintf(`[{"event":"a%d","distinct_id":"u"},{"event":"b%d","distinct_id":"u","offset":1000}]`, i, i))
		rec.ReceivedAt = ingestiontest.Arrival.Add(at)
		rec.RequestID = [16]byte{byte(i + 1), 0xcc}
		if _, err := j.Append(t.Context(), rec.Append(nil)); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("a%d b%d", i, i))
	}
	stages, known := dataStages(t, d)
	s := &stage{db: d}
	one := &fakeSink{name: "one"}
	cfg := deliverConfig()
	startDeliver(t, cfg, j, d, newSinks(one))
	startWorker(t, workerConfig(), j, d, known, append(stages, s)...)
	all := strings.Join(want, " ")
	eventually(t, "everything in the order it came", func() bool { return s.seen() == all && one.has() == all })
}

// A slow sink delays neither the worker nor the other sinks, and gets no more batches
// than may be in flight.
func TestWorkerDoesNotWaitForASlowSink(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	release := make(chan struct{})
	crawls := &fakeSink{name: "crawls", write: func(b *sdk.Batch) (sdk.WriteResult, error) { <-release; return b.Committed(), nil }}
	fine := &fakeSink{name: "fine"}
	startDeliver(t, deliverConfig(), j, d, newSinks(crawls, fine))
	s := &stage{db: d}
	w := startWorker(t, workerConfig(), j, d, nil, s)
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprint("e", i))
		accept(t, j, names[i])
	}
	all := strings.Join(names, " ")
	eventually(t, "the worker is through", func() bool { return s.seen() == all && w.Progress().State == pipeline.Current })
	eventually(t, "the other sink has everything", func() bool { return fine.has() == all })
	if got := committed(t, j, "sink/crawls").Count; got != 0 {
		t.Errorf("%d events are done by a sink that has answered nothing", got)
	}
	close(release)
	eventually(t, "the slow one has everything in order", func() bool { return crawls.has() == all })
}

package simulation_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/simulation"
)

// Names of events that a component refuses: the worker, or the sink of that name.
const (
	poisonWorker = "poison worker"
	rejectPrefix = "rejected by "
	crashPrefix  = "crashes "
)

// item is an event as a client sends it.
type item struct {
	UUID       string `json:"uuid"`
	Event      string `json:"event"`
	DistinctID string `json:"distinct_id"`
}

// requests is the number of requests of a simulation.
const requests = 40

// produce sends requests until each is accepted. A request without an answer is sent
// again, as it was.
func (w *world) produce() {
	crashing := map[string]bool{}
	for n := range requests {
		d := w.plan.Draw("request")
		w.send(w.request(d, n, crashing))
		if wait := time.Duration(d.ExpFloat64() * float64(time.Second)); d.IntN(3) == 0 {
			time.Sleep(wait)
		}
	}
}

// request returns the record of a request.
func (w *world) request(d *rand.Rand, n int, crashing map[string]bool) *event.Record {
	rec := &event.Record{ReceivedAt: time.Now(), ProjectID: 1, Historical: n%20 >= 15 && d.IntN(2) == 0}
	binary.BigEndian.PutUint64(rec.RequestID[:], d.Uint64())
	var items []item
	for k := range 1 + d.IntN(6) {
		it := item{fmt.Sprintf("0190a5a2-7b3c-7000-8000-%06d%06d", n, k), "ok", fmt.Sprintf("u%d", d.IntN(5))}
		sink := w.sinks[d.IntN(len(w.sinks))].name
		switch d.IntN(60) {
		case 0, 1:
			it.Event = poisonWorker
		case 2, 3:
			it.Event = rejectPrefix + sink
		case 4:
			if !crashing[sink] { // many events that crash a plugin are not taken for the cause
				it.Event, crashing[sink] = crashPrefix+sink, true
			}
		}
		items = append(items, it)
	}
	if d.IntN(8) == 0 {
		items = append(items, items[0]) // a duplicate
	}
	var err error
	if rec.Items, err = json.Marshal(items); err != nil {
		panic(err)
	}
	return rec
}

// send appends a record until the journal confirms it.
func (w *world) send(rec *event.Record) {
	data := rec.Append(nil)
	for !w.t.Failed() {
		p, started := w.process()
		if p != nil {
			_, err := w.journal.Open(p).Append(context.Background(), data)
			if err == nil {
				return
			}
			if err != simulation.ErrEnded { //nolint:errorlint // the journal returns it as it is
				time.Sleep(100 * time.Millisecond)
				continue
			}
		}
		<-started
	}
}

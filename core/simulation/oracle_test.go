package simulation_test

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// accepted is an event of the journal, as of its first record.
type accepted struct {
	ev         sdk.Event
	historical bool
	place      journal.Position // behind it
	before     *accepted        // the event of its distinct id and kind before it
}

// oracle knows what was accepted and checks what the components did with it.
type oracle struct {
	world *world
	late  sync.WaitGroup // answers that come after their call

	mu    sync.Mutex
	seen  uint64 // records decoded
	byID  map[string]*accepted
	order []*accepted
	last  map[string]*accepted // by distinct id and kind
	done  map[string]int       // events of order that are checked, by reader

	read     int             // rows of sim_stored that were read
	stored   map[string]bool // by uuid
	letters  map[string]bool // by source and uuid
	letterID int64           // the newest dead letter that was read
}

func newOracle(w *world) *oracle {
	return &oracle{world: w, byID: map[string]*accepted{}, last: map[string]*accepted{}, done: map[string]int{}, stored: map[string]bool{}, letters: map[string]bool{}}
}

// update decodes new records.
func (o *oracle) update() {
	dec := event.NewDecoder(event.DefaultLimits())
	for _, r := range o.world.journal.Records(o.seen) {
		o.seen = r.Seq
		rec, err := event.ParseRecord(r.Data)
		if err != nil {
			panic(err)
		}
		var out event.Decoded
		dec.Decode(&rec, &out)
		for i, ev := range out.Events {
			if o.byID[ev.UUID] != nil {
				continue
			}
			key := ev.DistinctID
			if rec.Historical {
				key += " import"
			}
			a := &accepted{ev: ev, historical: rec.Historical, place: journal.Position{Seq: r.Seq - 1, Index: out.Index[i] + 1}, before: o.last[key]}
			o.last[key], o.byID[ev.UUID] = a, a
			o.order = append(o.order, a)
		}
	}
}

// checkOrder checks that a destination had the events before the one that it stores.
func (o *oracle) checkOrder(d *destination, uuid string) {
	o.update()
	a := o.byID[uuid]
	if a == nil {
		o.world.failf("sink %s gets the event %s, which was not accepted", d.name, uuid)
		return
	}
	if d.refuses(a.ev.Name) {
		o.world.failf("sink %s has stored the event %s, which it refuses", d.name, uuid)
	}
	for b := a.before; b != nil; b = b.before {
		if !d.has[b.ev.UUID] && !d.refuses(b.ev.Name) {
			o.world.failf("sink %s gets the event %s of %s before %s", d.name, uuid, a.ev.DistinctID, b.ev.UUID)
			return
		}
	}
}

// checkCommit checks that a cursor passes no event that is neither stored nor a dead
// letter.
func (o *oracle) checkCommit(reader string, to *journal.Position) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.update()
	sink, historical, isSink := sinkOf(reader)
	if to == nil { // an import ends where the live cursor is
		live := o.world.journal.Readers()["sink/"+sink]
		to = &live
	}
	stored, lost := o.isStored, func(a *accepted) bool { return a.historical != (reader == pipeline.HistoricalReader) }
	if isSink {
		d := o.destination(sink)
		importAt, importing := o.world.journal.Readers()["historical/"+reader]
		lost = func(a *accepted) bool {
			if historical {
				return !a.historical
			}
			return a.historical && importing && importAt.Before(a.place) // its own cursor is before it
		}
		stored = func(a *accepted) bool { return d.has[a.ev.UUID] || d.refuses(a.ev.Name) && o.isDeadLetter(reader, a) }
	}
	first := o.done[reader]
	whole := true
	for i := first; i < len(o.order) && !to.Before(o.order[i].place); i++ {
		switch a := o.order[i]; {
		case lost(a):
			whole = whole && a.historical == historical // checked again when the import has ended
		case !stored(a):
			o.world.failf("the cursor of %s moves to %+v over the event %s (%s), which is neither stored nor a dead letter", reader, *to, a.ev.UUID, a.ev.Name)
			return
		}
		if whole {
			o.done[reader] = i + 1
		}
	}
}

func (o *oracle) destination(name string) *destination {
	i := slices.IndexFunc(o.world.sinks, func(d *destination) bool { return d.name == name })
	return o.world.sinks[i]
}

// isStored reports whether the worker has processed an event.
func (o *oracle) isStored(a *accepted) bool {
	if a.ev.Name == poisonWorker {
		return o.isDeadLetter("worker", a)
	}
	if !o.stored[a.ev.UUID] {
		o.load()
	}
	return o.stored[a.ev.UUID]
}

func (o *oracle) isDeadLetter(source string, a *accepted) bool {
	key := strings.TrimPrefix(source, "historical/") + " " + a.ev.UUID
	if !o.letters[key] {
		o.load()
	}
	return o.letters[key]
}

// load reads what was committed since it was called last.
func (o *oracle) load() {
	var stored []struct {
		N    int
		UUID string `bun:"uuid"`
	}
	var letters []struct {
		ID                int64
		Source, EventUUID string
	}
	ctx := context.Background()
	err := o.world.truth.Read(ctx).NewRaw("SELECT n, uuid FROM sim_stored WHERE n > ? ORDER BY n", o.read).Scan(ctx, &stored)
	if err == nil {
		err = o.world.truth.Read(ctx).NewRaw("SELECT id, source, event_uuid FROM dead_letters WHERE id > ? ORDER BY id", o.letterID).Scan(ctx, &letters)
	}
	if err != nil {
		o.world.failf("%v", err)
	}
	for _, r := range stored {
		if o.stored[r.UUID] {
			o.world.failf("the worker has processed %s twice", r.UUID)
		}
		o.stored[r.UUID], o.read = true, r.N
	}
	for _, r := range letters {
		o.letters[r.Source+" "+r.EventUUID], o.letterID = true, r.ID
	}
}

func (o *oracle) count(query string, args ...any) (n int) {
	if err := o.world.truth.LookupDB().QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		o.world.failf("%s: %v", query, err)
	}
	return n
}

// isDrained reports whether each cursor is at the end of the journal.
func (o *oracle) isDrained() bool {
	last := o.world.journal.Last()
	readers := o.world.journal.Readers()
	want := []string{pipeline.LiveReader, pipeline.HistoricalReader}
	for _, s := range o.world.sinks {
		want = append(want, "sink/"+s.name)
	}
	for _, name := range want {
		if readers[name].Seq < last {
			return false
		}
	}
	for name, at := range readers {
		if strings.HasPrefix(name, "historical/") && at.Seq < last {
			return false
		}
	}
	return true
}

// checkEnd checks what is stored when everything is delivered.
func (o *oracle) checkEnd() {
	o.late.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.world.t.Failed() {
		return
	}
	o.update()
	o.checkStored()
	o.load()
	for _, a := range o.order {
		if has, want := o.letters["worker "+a.ev.UUID], a.ev.Name == poisonWorker; has != want {
			o.world.failf("event %s (%s) is a dead letter of the worker: %v, want %v", a.ev.UUID, a.ev.Name, has, want)
		}
		for _, d := range o.world.sinks {
			want := d.refuses(a.ev.Name)
			if has := o.letters["sink/"+d.name+" "+a.ev.UUID]; has != want {
				o.world.failf("event %s (%s) is a dead letter of %s: %v, want %v", a.ev.UUID, a.ev.Name, d.name, has, want)
			}
			if d.has[a.ev.UUID] == want {
				o.world.failf("sink %s has the event %s (%s): %v, want %v", d.name, a.ev.UUID, a.ev.Name, want, !want)
			}
		}
	}
}

// checkStored checks that the worker has processed each event once, in order.
func (o *oracle) checkStored() {
	var stored []string
	if err := o.world.truth.Read(context.Background()).NewRaw("SELECT uuid FROM sim_stored ORDER BY n").Scan(context.Background(), &stored); err != nil {
		o.world.failf("%v", err)
	}
	var want, got [2][]string // live, import
	for _, a := range o.order {
		if a.ev.Name != poisonWorker {
			want[kind(a)] = append(want[kind(a)], a.ev.UUID)
		}
	}
	for _, id := range stored {
		a := o.byID[id]
		if a == nil {
			o.world.failf("the worker has processed %s, which was not accepted", id)
			return
		}
		got[kind(a)] = append(got[kind(a)], id)
	}
	for i := range want {
		if !slices.Equal(want[i], got[i]) {
			o.world.failf("the worker has processed\n%v, want\n%v", got[i], want[i])
		}
	}
	if n := o.count("SELECT count(*) FROM events"); n != len(stored) {
		o.world.failf("the event store has %d events, want %d", n, len(stored))
	}
}

func kind(a *accepted) int {
	if a.historical {
		return 1
	}
	return 0
}

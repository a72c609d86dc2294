package ingestion

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// delivery is the way of events to one sink.
type delivery struct {
	cfg     Config
	own     SinkConfig
	rules   *rules
	log     Log
	store   *store
	sink    Sink
	metrics *Metrics
	logger  *zap.Logger
	after   <-chan struct{} // closed when the delivery before this one has ended; may be nil
	gate    *pauseGate
	tally   tally

	running context.Context // ends when nothing new is to be sent
	living  context.Context // ends when calls at hand are to be given up
	stop    context.CancelFunc
	ended   chan struct{}

	live      *walk
	past      *walk // of imports; nil when nothing is left of them
	turns     int   // stretches of live that were received while past had to wait
	voyaging  context.Context
	walking   sync.WaitGroup // those of this voyage
	confirmed sync.WaitGroup // the committers

	number  uint64    // the last that was given to an event
	way     []*parcel // received and not settled up to the first, in order
	waiting int       // of those, how many were not sent yet
	flying  int       // and how many are being sent
	imports int       // and how many of these are of past
	staged  int       // events of those that wait for a flush
	heavy   int       // their bytes
	since   time.Time // when the oldest of them was staged
	landed  chan landing
	replays chan *replay
	asked   *replay // holds the others back until it has landed
	rewound bool    // what was staged is gone: it has to be sent again
	futile  int     // flushes in a row that made nothing safe

	size  window
	alone sync.RWMutex // held by what may bring the plugin down, while nothing else is sent
	fatal atomic.Int64 // events in a row that did
}

// landing is how sending a parcel ended; without one, that of a replay.
type landing struct {
	parcel *parcel
	err    error
}

// errStopped means that the delivery was told to stop before all was settled.
var errStopped = errors.New("stopped")

// mostAhead is how many parcels may wait for the first of them to be settled.
// They are sent again when the server is killed.
const mostAhead = 256

// run delivers until it is told to stop.
func (d *delivery) run() {
	defer close(d.ended)
	defer d.stop()
	if d.after != nil {
		<-d.after
	}
	var err error
	if d.own, err = settingsOf(d.sink); err == nil {
		d.rules, err = newRules(d.own)
	}
	if err != nil {
		d.tally.failed("misconfigured", err)
		d.logger.Error("a sink gets nothing: its delivery is not configured right", zap.Error(err))
		<-d.running.Done()
		return
	}
	if !d.recall() || !d.register() {
		return
	}
	d.landed = make(chan landing)
	d.tally.is("idle")
	for d.running.Err() == nil {
		d.voyage()
	}
	d.confirmed.Wait()
	for _, w := range []*walk{d.past, d.live} {
		if w == nil {
			continue
		}
		if err := w.commit.flush(d.living); err != nil {
			d.logger.Warn("the journal was not told how far a sink came; some events will be sent again", zap.Error(err))
		}
	}
}

// safe tells the sink up to which number everything is.
func (d *delivery) safe(through uint64) {
	if r, ok := d.sink.(interface{ Resume(committedThrough uint64) }); ok && through > 0 {
		r.Resume(through)
	}
}

// voyage delivers from where it is safe on, until it is told to stop or what
// was staged is lost and has to be sent again.
func (d *delivery) voyage() {
	d.way, d.waiting, d.flying, d.imports, d.rewound, d.turns = nil, 0, 0, 0, false, 0
	d.unstage()
	ctx, enough := context.WithCancel(d.running)
	d.voyaging = ctx
	at := d.live.commit.position()
	d.number = at.Count
	if d.past != nil {
		d.number = max(d.number, d.past.commit.position().Count)
		d.past.bound = newBound(at.Seq)
		d.walkOn(d.past)
	}
	d.safe(d.number)
	d.walkOn(d.live)
	for d.running.Err() == nil && !d.rewound {
		d.step()
	}
	enough()
	d.walking.Wait()
	for d.flying > 0 {
		d.land(<-d.landed)
	}
	d.turnDown()
	if d.staged > 0 && !d.rewound {
		d.flush(sdk.FlushShutdown)
	}
}

// step waits for the next thing to happen and does it.
func (d *delivery) step() {
	if d.rewound = d.lost(); d.rewound {
		return
	}
	reason := d.due()
	_, _, changed := d.gate.get()
	open := reason == sdk.FlushUnspecified && d.asked == nil && !d.gate.paused()
	if open {
		d.depart()
	}
	if d.flying == 0 && reason != sdk.FlushUnspecified {
		d.flush(reason)
		return
	}
	if d.flying == 0 && d.asked != nil {
		d.insert()
		return
	}
	replays := d.replays
	if d.asked != nil || d.gate.paused() {
		replays = nil
	}
	var timer <-chan time.Time
	if d.staged > 0 && reason == sdk.FlushUnspecified {
		t := time.NewTimer(time.Until(d.since.Add(d.stagedAge())))
		defer t.Stop()
		timer = t.C
	}
	var live, past <-chan *stretch
	if open && d.room() {
		var done bool
		if live, past, done = d.next(); done {
			return
		}
	}
	select {
	case s := <-live:
		d.turns++
		d.receive(d.live, s)
	case s := <-past:
		d.turns = 0
		d.receive(d.past, s)
	case <-d.look():
		d.closePast()
	case l := <-d.landed:
		d.land(l)
	case d.asked = <-replays:
	case <-changed:
	case <-timer:
	case <-d.running.Done():
	}
}

// livesFirst is how many stretches of what happens now go before one of an
// import.
const livesFirst = 4

// room reports whether another stretch can be received.
func (d *delivery) room() bool {
	return d.waiting < d.size.within(d.flights()) && (len(d.way) < mostAhead || d.staged > 0)
}

// next returns where the next stretch may come from. What happens now goes
// first, but not for ever: when it is there it is received, and done is true.
func (d *delivery) next() (live, past <-chan *stretch, done bool) {
	if d.past == nil {
		return d.live.out, nil, false
	}
	if d.turns < livesFirst {
		select {
		case s := <-d.live.out:
			d.turns++
			d.receive(d.live, s)
			return nil, nil, true
		default:
		}
	}
	return d.live.out, d.past.out, false
}

// receive puts a stretch on the way, behind what is there.
func (d *delivery) receive(w *walk, s *stretch) {
	if s.sighted != nil && d.past == nil && !d.openPast(*s.sighted) {
		return // told to stop
	}
	w.at = s.end
	if w == d.live && d.past != nil {
		d.past.bound.set(s.end.Seq)
	}
	if len(s.parcels) == 0 {
		s.parcels = []*parcel{{settled: true}} // it only moves the cursor
	}
	for _, p := range s.parcels {
		p.walk, p.begin, p.firstSeq = w, s.begin, d.number+1
		d.number += uint64(p.count)
		p.through = d.number
		if !p.settled {
			d.waiting++
		}
	}
	// Events that are not sent have numbers, too: the last of the stretch.
	last := s.parcels[len(s.parcels)-1]
	d.number += uint64(s.skipped)
	last.last, last.end, last.through = true, s.end, d.number
	if last.count > 0 || s.skipped > 0 {
		w.filled = s.end
	}
	d.way = append(d.way, s.parcels...)
	d.advance()
}

// depart sends what can be sent: events of one distinct id are never in two
// batches at once, and imports leave half of the window free.
func (d *delivery) depart() {
	if d.waiting == 0 {
		return
	}
	most := d.size.within(d.flights())
	busy := keysNone
	for _, p := range d.way {
		switch {
		case p.flying: // nothing else of it is to be looked at
		case p.settled || p.staged:
			continue
		case d.flying >= most:
			return
		case busy&p.keys != 0 || p.walk.historical && d.imports >= max(1, most/2):
		default:
			d.send1(p)
		}
		busy |= p.keys
	}
}

func (d *delivery) send1(p *parcel) {
	p.flying = true
	d.waiting--
	d.flying++
	if p.walk.historical {
		d.imports++
	}
	d.tally.flying(d.flying)
	go func() {
		d.landed <- landing{p, d.send(p, 0, p.count, d.firstTrial())}
	}()
}

// land takes note of how sending ended.
func (d *delivery) land(l landing) {
	d.flying--
	p := l.parcel
	if p != nil {
		p.flying = false
		if p.walk.historical {
			d.imports--
		}
	}
	switch {
	case p == nil:
		d.asked = nil
	case l.err != nil: // only when stopping: it stays unsettled
	case p.staged:
		d.stage(p)
	default:
		p.settled = true
		p.release()
		d.advance()
	}
	d.tally.flying(d.flying)
	if d.flying == 0 && d.staged == 0 && d.running.Err() == nil {
		d.tally.is("idle")
	}
}

// advance moves the cursors behind the parcels that are settled, up to the
// first that is not.
func (d *delivery) advance() {
	n := 0
	for ; n < len(d.way) && d.way[n].settled; n++ {
		if p := d.way[n]; p.last {
			at := p.end
			at.Count = p.through
			p.walk.commit.to(at)
		}
	}
	if n == 0 {
		return
	}
	d.safe(d.way[n-1].through)
	clear(d.way[:n])
	d.way = d.way[n:]
	d.closePast()
}

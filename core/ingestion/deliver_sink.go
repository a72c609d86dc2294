package ingestion

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// delivery is the way of events to one sink.
type delivery struct {
	cfg     Config
	log     Log
	store   *store
	sink    Sink
	metrics *Metrics
	logger  *zap.Logger
	reader  string
	after   <-chan struct{} // closed when the delivery before this one has ended; may be nil
	tally   tally

	running context.Context // ends when nothing new is to be sent
	living  context.Context // ends when calls at hand are to be given up
	stop    context.CancelFunc
	ended   chan struct{}

	commit  *committer
	way     []*parcel // handed to the sink or on the way to it, in order
	flying  int       // of those, how many are being sent
	staged  int       // events of those that wait for a flush
	heavy   int       // their bytes
	since   time.Time // when the oldest of them was staged
	landed  chan landing
	replays chan *replay
	asked   *replay // holds the others back until it has landed
	usual   int     // events in the run assembled last
	rewound bool    // what was staged is gone: it has to be sent again
}

// landing is how sending a parcel ended; without one, that of a replay.
type landing struct {
	parcel *parcel
	err    error
}

// errStopped means that the delivery was told to stop before all was settled.
var errStopped = errors.New("stopped")

// run delivers until it is told to stop.
func (d *delivery) run() {
	defer close(d.ended)
	defer d.stop()
	if d.after != nil {
		<-d.after
	}
	at, ok := d.register()
	if !ok {
		return
	}
	if r, ok := d.sink.(interface{ Resume(committedThrough uint64) }); ok {
		r.Resume(at.Count)
	}
	d.commit = newCommitter(d.log, d.reader, at, d.logger)
	d.landed = make(chan landing)
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		d.commit.run(d.running)
	}()
	d.tally.is("idle")
	for d.running.Err() == nil {
		d.voyage(d.commit.position())
	}
	<-committed
	if err := d.commit.flush(d.living); err != nil {
		d.logger.Warn("the journal was not told how far a sink came; some events will be sent again", zap.Error(err))
	}
}

// register finds the sink's place in the journal.
func (d *delivery) register() (journal.Position, bool) {
	pause := backoff{least: d.cfg.Deliver.RetryMin, most: d.cfg.Deliver.RetryMax}
	for {
		at, err := d.log.Register(d.running, d.reader, d.cfg.Deliver.start())
		if err == nil {
			return at, true
		}
		d.tally.failed("starting", err)
		if !sleep(d.running, pause.pause()) {
			return at, false
		}
	}
}

// voyage delivers from at on, until it is told to stop or what was staged is
// lost and has to be sent again.
func (d *delivery) voyage(at journal.Position) {
	d.way, d.flying, d.rewound = nil, 0, false
	d.unstage()
	parcels := make(chan *parcel)
	assembling, enough := context.WithCancel(d.running)
	assembled := make(chan struct{})
	go func() {
		defer close(assembled)
		d.assemble(assembling, at, parcels)
	}()
	for d.running.Err() == nil && !d.rewound {
		d.step(parcels)
	}
	enough()
	<-assembled
	for d.flying > 0 {
		d.land(<-d.landed)
	}
	d.turnDown()
	if d.staged > 0 && !d.rewound {
		d.flush(sdk.FlushShutdown)
	}
}

// step waits for the next thing to happen and does it.
func (d *delivery) step(parcels <-chan *parcel) {
	reason := d.due()
	if reason != sdk.FlushUnspecified && d.flying == 0 {
		d.flush(reason)
		return
	}
	if d.asked != nil && d.flying == 0 {
		d.insert()
		return
	}
	replays, next := d.replays, parcels
	if d.asked != nil {
		replays, next = nil, nil
	}
	if reason != sdk.FlushUnspecified || d.flying >= d.window() {
		next = nil
	}
	var timer <-chan time.Time
	if d.staged > 0 {
		t := time.NewTimer(time.Until(d.since.Add(d.stagedAge())))
		defer t.Stop()
		timer = t.C
	}
	select {
	case p := <-next:
		if d.rewound = d.lost(); !d.rewound {
			d.depart(p)
		}
	case l := <-d.landed:
		d.land(l)
	case d.asked = <-replays:
	case <-timer:
	case <-d.running.Done():
	}
}

// window is how many parcels may be on the way at once. One at a time keeps
// the order of every distinct id.
func (d *delivery) window() int {
	p := d.sink.Properties()
	if p.Ordering != sdk.OrderNone || p.Commit == sdk.CommitOnFlush {
		return 1
	}
	return max(1, min(p.MaxInFlight, d.cfg.Deliver.MaxInFlight))
}

// depart sends a parcel on its way.
func (d *delivery) depart(p *parcel) {
	d.way = append(d.way, p)
	if p.settled { // it holds no event
		d.advance()
		return
	}
	d.flying++
	go func() {
		d.landed <- landing{p, d.send(p, 0, p.count, d.cfg.Deliver.MaxInternal)}
	}()
}

// land takes note of how sending ended.
func (d *delivery) land(l landing) {
	d.flying--
	switch {
	case l.parcel == nil:
		d.asked = nil
	case l.err != nil: // only when stopping: it stays unsettled
	case l.parcel.staged:
		d.stage(l.parcel)
	default:
		l.parcel.settled = true
		d.advance()
	}
	if d.flying == 0 && d.staged == 0 && d.running.Err() == nil {
		d.tally.is("idle")
	}
}

// advance moves the cursor behind the parcels that are settled, up to the
// first that is not.
func (d *delivery) advance() {
	n := 0
	for n < len(d.way) && d.way[n].settled {
		n++
	}
	if n == 0 {
		return
	}
	d.commit.to(d.way[n-1].end)
	d.way = d.way[n:]
}

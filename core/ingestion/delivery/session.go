package delivery

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"

	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
)

// delivery sends the events of the journal to one sink. Its goroutine runs one
// session after the other; a session ends when the delivery stops, or when staged
// events were lost and must be read again. In each step it dispatches batches,
// flushes, or inserts a replay, and waits for the next thing to happen.
type delivery struct {
	*target
	sched   *scheduler
	sender  *sender
	staging *staging
	cursors *cursors

	drainCtx context.Context // ends when nothing new is sent
	killCtx  context.Context // ends when calls at hand are given up
	stop     context.CancelFunc
	ended    chan struct{}   // closed at the end
	after    <-chan struct{} // closed at the end of the delivery before this one; may be nil

	results     chan sendResult
	replays     chan *replayRequest
	replay      *replayRequest // waits for, or is at, its turn: nothing else is sent
	replaying   bool           // it is being sent
	needsRewind bool           // staged events are lost: the session ends
	cautious    int            // events that are sent with nothing staged before: one may crash the plugin
	liveStreak  int            // chunks of live events in a row while an import waits
}

// sendResult is the outcome of sending a batch; without a batch, that of a
// replay.
type sendResult struct {
	batch *batch
	err   error
}

// run delivers until drainCtx ends. The end of killCtx gives up the calls at
// hand.
func (d *delivery) run(drainCtx, killCtx context.Context) {
	defer close(d.ended)
	defer d.stop()
	d.drainCtx, d.sender.drainCtx, d.cursors.drainCtx = drainCtx, drainCtx, drainCtx
	d.killCtx, d.sender.killCtx = killCtx, killCtx
	if d.after != nil {
		<-d.after
	}
	// The cursor comes first: a sink that cannot be sent to keeps its place.
	if !d.cursors.register() {
		return
	}
	if err := d.configure(); err != nil {
		d.stats.SetFailed(status.Misconfigured, err)
		d.logger.Error("sink delivery misconfigured: no events are sent", zap.Error(err))
		<-d.drainCtx.Done()
		d.cursors.flush(d.killCtx)
		return
	}
	if !d.sender.loadPause() || d.sender.erased != nil && !d.sender.erased.WaitRecovered(drainCtx) {
		d.cursors.flush(d.killCtx)
		return
	}
	d.stats.SetState(status.Idle)
	for d.drainCtx.Err() == nil {
		d.runSession()
	}
	d.cursors.flush(d.killCtx)
}

// runSession delivers from the cursors on.
func (d *delivery) runSession() {
	ctx, stopReading := context.WithCancel(d.drainCtx)
	defer stopReading()
	d.needsRewind, d.liveStreak = false, 0
	d.staging.reset()
	d.sched.reset(d.cursors.startSession(ctx))
	d.resume(d.sched.lastSeq)
	d.cursors.startReader(d.cursors.live)
	for d.drainCtx.Err() == nil && !d.needsRewind {
		d.step()
	}
	stopReading()
	d.cursors.reading.Wait()
	for d.busy() {
		d.onSent(<-d.results)
	}
	d.rejectReplay()
	if d.staging.events > 0 && !d.needsRewind {
		d.flush(sdk.FlushShutdown)
	}
}

// busy reports whether something is being sent.
func (d *delivery) busy() bool { return d.sched.inFlight > 0 || d.replaying }

// windowSize is the number of batches that may be in flight now.
func (d *delivery) windowSize() int { return d.sender.window.Within(d.maxInFlight()) }

// step acts on the state of the delivery, or waits for it to change.
func (d *delivery) step() {
	if d.needsRewind = d.staging.lost(); d.needsRewind {
		return
	}
	reason := d.staging.dueReason(d.cautious > 0)
	_, _, pauseChanged := d.sender.gate.Get()
	open := reason == sdk.FlushUnspecified && d.replay == nil && !d.sender.gate.Paused()
	if open {
		d.sched.dispatch(d.windowSize(), d.ordering(), d.startSend)
	}
	switch {
	case d.busy():
	case reason != sdk.FlushUnspecified:
		d.flush(reason)
		return
	case d.replay != nil:
		d.startReplay()
		return
	}
	d.wait(open, reason, pauseChanged)
}

// wait waits for the next thing to happen and handles it.
func (d *delivery) wait(open bool, reason sdk.FlushReason, pauseChanged <-chan struct{}) {
	replays := d.replays
	if d.replay != nil || d.sender.gate.Paused() {
		replays = nil
	}
	var flushDue <-chan time.Time
	if d.staging.events > 0 && reason == sdk.FlushUnspecified {
		t := time.NewTimer(d.staging.untilDue())
		defer t.Stop()
		flushDue = t.C
	}
	var live, historical <-chan *chunk
	if open && d.sched.hasRoom(d.windowSize(), d.staging.events > 0) {
		var received bool
		if live, historical, received = d.receivePreferred(); received {
			return
		}
	}
	select {
	case c := <-live:
		d.receiveLive(c)
	case c := <-historical:
		d.liveStreak = 0
		d.receive(d.cursors.historical, c)
	case <-d.historicalCheck():
		d.cursors.closeHistorical(d.sched.holds)
	case r := <-d.results:
		d.onSent(r)
	case d.replay = <-replays:
	case <-pauseChanged:
	case <-flushDue:
	case <-d.drainCtx.Done():
	}
}

// historicalCheckInterval is how often the reader of imports is checked for its
// end.
const historicalCheckInterval = 200 * time.Millisecond

// historicalCheck returns a channel for the next check; nil without an import.
func (d *delivery) historicalCheck() <-chan time.Time {
	if d.cursors.historical == nil {
		return nil
	}
	return time.After(historicalCheckInterval)
}

// liveBurst is the number of chunks of live events that precede a chunk of an
// import.
const liveBurst = 4

// receivePreferred returns the channels from which the next chunk may come. Live
// events go first, up to liveBurst chunks: one that is ready is received, and
// received is true.
func (d *delivery) receivePreferred() (live, historical <-chan *chunk, received bool) {
	if d.cursors.historical == nil {
		return d.cursors.live.chunks, nil, false
	}
	if d.liveStreak < liveBurst {
		select {
		case c := <-d.cursors.live.chunks:
			d.receiveLive(c)
			return nil, nil, true
		default:
		}
	}
	return d.cursors.live.chunks, d.cursors.historical.chunks, false
}

func (d *delivery) receiveLive(c *chunk) {
	d.liveStreak++
	d.receive(d.cursors.live, c)
}

// receive queues a chunk.
func (d *delivery) receive(r *sinkReader, c *chunk) {
	if c.firstHistorical != nil && d.cursors.historical == nil {
		lastSeq, ok := d.cursors.openHistorical(*c.firstHistorical, d.sched.lastSeq)
		if !ok {
			return // the delivery stops
		}
		d.sched.lastSeq = lastSeq
	}
	d.cursors.onReceived(r, c)
	d.sched.add(r, c)
	d.advance()
}

// startSend sends a batch in a goroutine of its own.
func (d *delivery) startSend(b *batch) {
	d.stats.SetInFlight(d.sched.inFlight)
	st := d.newRetryState()
	st.cautious = d.cautious > 0
	d.cautious -= b.count
	if first := d.sched.firstStaged(); first != nil {
		st.session = first.state.session
	}
	go func() {
		d.results <- sendResult{b, d.sender.send(b, 0, b.count, st)}
	}()
}

// onSent handles the outcome of sending a batch or a replay.
func (d *delivery) onSent(r sendResult) {
	if r.batch == nil {
		d.replay, d.replaying = nil, false
	} else {
		d.sched.finish(r.batch)
		d.settle(r.batch, r.err)
	}
	d.stats.SetInFlight(d.sched.inFlight)
	if !d.busy() && d.staging.events == 0 && d.drainCtx.Err() == nil {
		d.stats.SetState(status.Idle)
	}
}

// settle settles a batch that was sent. One whose sending was stopped stays
// unsettled: a flush must not settle it because some of its records are staged.
func (d *delivery) settle(b *batch, err error) {
	switch {
	case err != nil:
		b.state.staged = false
		if errors.Is(err, errStagedLost) {
			d.needsRewind, d.cautious = true, int(b.lastSeq()-d.sched.pending[0].firstSeq)+1
		}
	case b.state.staged:
		if !d.staging.add(b) {
			d.needsRewind = true
		}
	default:
		b.state.settled = true
		b.release()
		d.advance()
	}
}

// flush asks the sink to commit the staged events.
func (d *delivery) flush(reason sdk.FlushReason) {
	if !d.staging.flush(reason) {
		d.needsRewind = true
	}
	d.advance()
}

// advance moves the cursors behind the settled batches.
func (d *delivery) advance() {
	if through, ok := d.sched.advance(); ok {
		d.resume(through)
		d.cursors.closeHistorical(d.sched.holds)
	}
}

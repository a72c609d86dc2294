package ingestion

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// ErrNoSink is the answer for a sink that is not configured.
var ErrNoSink = fault.New(fault.NotFound, "sink_not_found", "No sink of this name is configured.")

var errSinkBusy = fault.New(fault.Unavailable, "sink_unavailable", "The sink does not take events right now.").After(10 * time.Second)

// Replay sends one event to one sink, between the batches it gets anyway, under
// the number it had before. It waits until the sink takes it, or ctx ends. It
// fails with NotFound when no such sink is configured, with Unavailable when
// the sink was not asked, else with the sink's error.
func (d *Deliver) Replay(ctx context.Context, sink string, ev sdk.Event, seq uint64, attempt uint32) error {
	d.mu.Lock()
	del := d.running[sink]
	d.mu.Unlock()
	if del == nil {
		return ErrNoSink
	}
	q := &replay{ctx: ctx, event: ev, seq: seq, attempt: attempt, answer: make(chan error, 1)}
	select {
	case del.replays <- q:
	case <-del.ended:
		return errSinkBusy // there may be another by now
	case <-ctx.Done():
		return errSinkBusy
	}
	select {
	case err := <-q.answer:
		return err
	case <-del.ended:
	case <-ctx.Done(): // it may arrive all the same
	}
	select {
	case err := <-q.answer: // it came with the end
		return err
	default:
		return errSinkBusy
	}
}

// replay is an event on its way to a sink beside the journal.
type replay struct {
	ctx     context.Context
	event   sdk.Event
	seq     uint64
	attempt uint32
	answer  chan error
}

// insert sends the replay that was asked for on its way, now that nothing else
// is. What was staged before is made safe first, so that it cannot be mistaken
// for the replay.
func (d *delivery) insert() {
	if d.staged > 0 {
		d.flush(sdk.FlushManual)
	}
	if d.rewound {
		d.turnDown()
		return
	}
	d.flying++
	q := d.asked
	go func() {
		d.again(q)
		d.landed <- landing{}
	}()
}

// turnDown answers the replay that was asked for, if any, that it has to come
// again.
func (d *delivery) turnDown() {
	if d.asked != nil {
		d.asked.answer <- errSinkBusy
		d.asked = nil
	}
}

// again sends a replayed event. Nothing else is on the way to the sink.
func (d *delivery) again(q *replay) {
	ctx, cancel := context.WithCancel(q.ctx)
	defer cancel()
	defer context.AfterFunc(d.running, cancel)()
	if d.sink.Ready(ctx) != nil || ctx.Err() != nil {
		q.answer <- errSinkBusy
		return
	}
	seq := max(q.seq, 1)
	record := sdk.Record{
		UUID: uuidBytes(q.event.UUID), JSON: q.event.AppendJSON(nil), ReceivedAt: q.event.ReceivedAt, ProjectID: q.event.ProjectID,
	}
	b := &sdk.Batch{Attempt: q.attempt, FirstSeq: seq, LastSeq: seq, Records: []sdk.Record{record}}
	// It may have been edited: the id has to tell it from what was sent before.
	b.ID = batchID(d.sink.Name()+"\n"+string(record.JSON), b)
	result, failure := d.write(b)
	switch result.Outcome {
	case sdk.Committed:
	case sdk.Staged:
		failure = d.flushReplay(seq)
	case sdk.Partial:
		if failure = result.Failures[0].Err; failure == nil {
			failure = sdk.Errorf(sdk.ClassTransient, "unspecified", "failed without a reason")
		}
	case sdk.OutcomeUnspecified, sdk.Rejected:
	}
	if failure != nil {
		q.answer <- failure
		return
	}
	d.delivered(1)
	q.answer <- nil
}

// flushReplay makes a replayed event safe that a sink has staged.
func (d *delivery) flushReplay(seq uint64) *sdk.Error {
	seq = max(seq, d.lastSent())
	ctx, cancel := context.WithTimeout(d.living, d.cfg.Deliver.Timeout)
	defer cancel()
	result, err := d.sink.Flush(ctx, sdk.FlushManual, seq)
	switch {
	case err != nil:
		return classified(sdk.AsError(err))
	case len(result.Failures) > 0:
		return result.Failures[0].Err
	case result.CommittedThrough < seq:
		return sdk.Errorf(sdk.ClassTransient, "flush_incomplete", "the sink flushed through %d of %d", result.CommittedThrough, seq)
	}
	return nil
}

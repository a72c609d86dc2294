package delivery

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// ErrNoSink is the error for a sink that is not configured.
var ErrNoSink = fault.New(fault.NotFound, "sink_not_found", "No sink of this name is configured.")

// ErrSinkBusy is the error of a replay that was not sent.
var ErrSinkBusy = fault.New(fault.Unavailable, "sink_unavailable", "The sink does not take events right now.").After(10 * time.Second)

// Replay sends one event to one sink, between its batches, under its former
// sequence number. It returns when the sink has committed the event. It fails
// with NotFound when no such sink is configured, with Unavailable when the sink
// was not called, else with the sink's error.
func (d *Service) Replay(ctx context.Context, sink string, ev sdk.Event, seq uint64, attempt uint32) error {
	del := d.find(sink)
	if del == nil {
		return ErrNoSink
	}
	q := &replayRequest{ctx: ctx, event: ev, seq: seq, attempt: attempt, answer: make(chan error, 1)}
	select {
	case del.replays <- q:
	case <-del.ended:
		return ErrSinkBusy // its successor may accept the event
	case <-ctx.Done():
		return ErrSinkBusy
	}
	select {
	case err := <-q.answer:
		return err
	case <-del.ended:
	case <-ctx.Done(): // the sink may commit the event all the same
	}
	select {
	case err := <-q.answer: // both were ready
		return err
	default:
		return ErrSinkBusy
	}
}

// replayRequest is an event to send to a sink between its batches.
type replayRequest struct {
	ctx     context.Context
	event   sdk.Event
	seq     uint64
	attempt uint32
	answer  chan error
}

// startReplay sends the requested replay, while nothing else is in flight. It
// flushes before, so that staged events are not taken for the replay.
func (d *delivery) startReplay() {
	if d.staging.events > 0 {
		d.flush(sdk.FlushManual)
	}
	if d.needsRewind {
		d.rejectReplay()
		return
	}
	d.replaying = true
	q := d.replay
	go func() {
		d.sendReplay(q)
		d.results <- sendResult{}
	}()
}

// rejectReplay answers the requested replay, if any, that the sink is busy.
func (d *delivery) rejectReplay() {
	if d.replay != nil {
		d.replay.answer <- ErrSinkBusy
		d.replay = nil
	}
}

// sendReplay sends a replayed event and answers its request.
func (d *delivery) sendReplay(q *replayRequest) {
	ctx, cancel := context.WithCancel(q.ctx)
	defer cancel()
	defer context.AfterFunc(d.drainCtx, cancel)()
	if d.sink.Ready(ctx) != nil || ctx.Err() != nil || !d.lease.check() {
		q.answer <- ErrSinkBusy
		return
	}
	seq := max(q.seq, 1)
	ev := d.filter.WithRedactedIDs(q.event)
	record := sdk.Record{
		UUID: uuidBytes(ev.UUID), JSON: ev.AppendJSON(nil), ReceivedAt: ev.ReceivedAt, ProjectID: ev.ProjectID,
	}
	b := &sdk.Batch{Attempt: q.attempt, FirstSeq: seq, LastSeq: seq, Records: []sdk.Record{record}}
	// The event may have been edited: the id depends on its content.
	b.ID = batchID(d.sessionName()+"\n"+string(record.JSON), b)
	result, failure := d.sender.write(b, nil)
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
	d.sender.addDelivered(1)
	q.answer <- nil
}

// flushReplay asks the sink to commit a replayed event that it has staged.
func (d *delivery) flushReplay(seq uint64) *sdk.Error {
	seq = max(seq, d.sched.lastStagedSeq())
	ctx, cancel := context.WithTimeout(d.killCtx, d.cfg.Timeout)
	defer cancel()
	result, err := d.sink.Flush(ctx, sdk.FlushManual, seq)
	switch {
	case err != nil:
		return classify(sdk.AsError(err))
	case len(result.Failures) > 0:
		return result.Failures[0].Err
	case result.CommittedThrough < seq:
		return sdk.Errorf(sdk.ClassTransient, "flush_incomplete", "the sink flushed through %d of %d", result.CommittedThrough, seq)
	}
	return nil
}

package ingestion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// Replayer sends dead letters again, each to where it could not go before: to
// the stages of the worker, or to the one sink that refused it. A letter that
// arrives is removed; one that fails again stays, with the new error.
type Replayer struct {
	store   *store
	worker  *Worker
	deliver *Deliver
}

// NewReplayer returns a Replayer.
func NewReplayer(d *db.DB, w *Worker, del *Deliver) *Replayer {
	return &Replayer{&store{d}, w, del}
}

// replayLimit is how many dead letters one call replays at most.
const replayLimit = 1000

// Replayed says what a replay did.
type Replayed struct {
	DryRun   bool            `json:"dry_run"`
	Matched  int             `json:"matched"`
	Replayed int             `json:"replayed"`
	Failed   []ReplayFailure `json:"failed"`
	Sources  map[string]int  `json:"sources"` // of those matched
}

// ReplayFailure is a dead letter that failed again.
type ReplayFailure struct {
	ID    int64  `json:"id"`
	Error string `json:"error"`
}

// Replay sends the dead letters that match again, oldest first, at most a
// thousand in one call. A dry run only counts them.
func (r *Replayer) Replay(ctx context.Context, projectID int64, f LetterFilter, dryRun bool) (Replayed, error) {
	out := Replayed{DryRun: dryRun, Failed: []ReplayFailure{}, Sources: map[string]int{}}
	letters, err := r.store.oldestLetters(ctx, projectID, f, 0, replayLimit)
	if err != nil {
		return out, err
	}
	out.Matched = len(letters)
	for i := range letters {
		out.Sources[letters[i].Source]++
	}
	if dryRun {
		return out, nil
	}
	for i := range letters {
		if err := r.one(ctx, &letters[i]); err != nil {
			if ctx.Err() != nil {
				return out, err
			}
			out.Failed = append(out.Failed, ReplayFailure{letters[i].ID, err.Error()})
			continue
		}
		out.Replayed++
	}
	return out, nil
}

// one replays a dead letter and removes it.
func (r *Replayer) one(ctx context.Context, l *DeadLetter) error {
	var ev sdk.Event
	err := json.Unmarshal(l.Payload, &ev)
	if err != nil {
		return fmt.Errorf("read the payload: %w", err)
	}
	remove := func(ctx context.Context) error {
		if err := r.store.dropLetter(ctx, l.ProjectID, l.ID); err != nil && !errors.Is(err, errNoLetter) {
			return err
		}
		return nil
	}
	sink, ok := strings.CutPrefix(l.Source, sourceSink)
	if !ok {
		err = r.worker.Replay(ctx, ev, remove)
	} else if err = r.deliver.Replay(ctx, sink, ev, l.Seq); err == nil {
		return remove(ctx)
	}
	if err == nil || ctx.Err() != nil || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.NotFound) {
		return err
	}
	again := letter(l.Source, &ev, sdk.AsError(err), time.Now())
	again.Seq = l.Seq
	if e := sdk.AsError(err); !ok {
		again.Class, again.Code = sdk.ClassPermanent.String(), e.Code
	}
	return errors.Join(err, r.store.addLetter(ctx, again))
}

// Replay takes one event through the stages, and runs then in the same
// transaction. An event that is known already only runs then.
func (w *Worker) Replay(ctx context.Context, ev sdk.Event, then func(ctx context.Context) error) error {
	return w.guarded(ctx, func(ctx context.Context, _ *collector) error {
		batch, err := w.unknown(ctx, []*sdk.Event{&ev})
		if err != nil {
			return err
		}
		if len(batch) > 0 {
			if err := w.through(ctx, batch); err != nil {
				return err
			}
		}
		return then(ctx)
	})
}

var (
	errNoSink   = fault.New(fault.NotFound, "sink_not_found", "No sink of this name is configured.")
	errSinkBusy = fault.New(fault.Unavailable, "sink_unavailable", "The sink does not take events right now.").After(10 * time.Second)
)

// Replay sends one event to one sink, between the batches it gets anyway, under
// the number it had before. It waits until the sink takes it, or ctx ends.
func (d *Deliver) Replay(ctx context.Context, sink string, ev sdk.Event, seq uint64) error {
	d.mu.Lock()
	del := d.running[sink]
	d.mu.Unlock()
	if del == nil {
		return errNoSink
	}
	q := &replay{ctx: ctx, event: ev, seq: seq, answer: make(chan error, 1)}
	select {
	case del.replays <- q:
	case <-del.ended:
		return errNoSink
	case <-ctx.Done():
		return errSinkBusy
	}
	select {
	case err := <-q.answer:
		return err
	case <-del.ended:
		return errSinkBusy
	}
}

// replay is an event on its way to a sink beside the journal.
type replay struct {
	ctx    context.Context
	event  sdk.Event
	seq    uint64
	answer chan error
}

// again sends a replayed event. Nothing else is on the way to the sink.
func (d *delivery) again(q *replay) {
	if d.sink.Ready(q.ctx) != nil {
		q.answer <- errSinkBusy
		return
	}
	seq := max(q.seq, 1)
	record := sdk.Record{
		UUID: uuidBytes(q.event.UUID), JSON: q.event.AppendJSON(nil), ReceivedAt: q.event.ReceivedAt, ProjectID: q.event.ProjectID,
	}
	b := &sdk.Batch{Attempt: 1, FirstSeq: seq, LastSeq: seq, Records: []sdk.Record{record}}
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

// flushReplay makes a replayed event safe that a sink has staged, with all it
// has staged before.
func (d *delivery) flushReplay(seq uint64) *sdk.Error {
	if len(d.way) > 0 {
		seq = max(seq, d.way[len(d.way)-1].lastSeq())
	}
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

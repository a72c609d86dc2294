// Package replay sends dead letters again, each to its source: to the stages of
// the pipeline, or to the sink that rejected it.
//
// Replays are requested in the database (package deadletter), by any process; the
// Replayer of a server carries them out, and a crash loses none. A dead letter
// whose event arrives is deleted; one that fails again stays, with the new error.
//
// An event passes the stages exactly once: its dead letter is deleted in the same
// transaction. A sink receives it at least once, under the same uuid and batch id:
// a crash between delivery and deletion sends it again.
//
// On several nodes one of them replays at a time. One that loses this job in the middle
// of a call may still send the event, and so does the next one.
//
// Each source has a goroutine of its own while replays wait, so no sink waits for
// another. Replays leave most of the time to live events.
package replay

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/cluster/onenode"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// Pipeline replays an event through the stages.
type Pipeline interface {
	// Replay calls claim and then the stages, in one transaction. If claim returns
	// false it does nothing more.
	Replay(ctx context.Context, ev sdk.Event, claim func(ctx context.Context) (bool, error)) error
	// IsOutage reports whether an error of Replay is a failure of the database.
	IsOutage(ctx context.Context, err error) bool
}

// Config is the pauses of the Replayer.
type Config struct {
	// PollMax bounds the growing pause after failed polls of the database.
	PollMax time.Duration
	// RetryMin and RetryMax bound the growing pause between attempts.
	RetryMin, RetryMax time.Duration
}

// Replayer carries out requested replays.
type Replayer struct {
	cfg      Config
	store    *deadletter.Store
	pipeline Pipeline
	delivery delivery.Deliveries
	metrics  *deadletter.Metrics
	logger   *zap.Logger

	wake    chan struct{}
	service retry.Service

	erased Erased       // nil without erasures
	jobs   onenode.Jobs // nil for a single node

	mu   sync.Mutex
	busy map[string]bool // sources that have a goroutine
}

// Erased knows the persons that were erased after their events were received.
type Erased interface {
	DroppedAt(ctx context.Context, projectID int64, distinctID string, received time.Time) (bool, error)
}

// RespectErasures makes replays to sinks delete the dead letters of erased persons
// instead. The pipeline does so itself. It must be called before Start.
func (r *Replayer) RespectErasures(e Erased) { r.erased = e }

// Job is the name of the job that replays.
const Job = "replays"

// RunOn makes one of the nodes that share jobs replay at a time. It must be called before
// Start.
func (r *Replayer) RunOn(jobs onenode.Jobs) { r.jobs = jobs }

// NewReplayer returns a Replayer that has not started.
func NewReplayer(cfg Config, d *db.DB, p Pipeline, del delivery.Deliveries, m *deadletter.Metrics, logger *zap.Logger) *Replayer {
	return &Replayer{
		cfg: cfg, store: deadletter.NewStore(d), pipeline: p, delivery: del, metrics: m, logger: logger.Named("ingestion"),
		wake: make(chan struct{}, 1), busy: make(map[string]bool),
	}
}

// pollInterval is how often the database is polled for replays that other
// processes requested.
const pollInterval = time.Second

// Start begins to replay. The pipeline and delivery must be started before, and
// stopped after the Replayer.
func (r *Replayer) Start(context.Context) error {
	r.service.Start()
	onenode.Go(&r.service, r.jobs, Job, r.poll)
	return nil
}

// Stop gives up the replays at hand, which stay requested, and waits. An event
// that a sink received and has not confirmed is sent again after the next start.
func (r *Replayer) Stop(ctx context.Context) error { return r.service.Stop(ctx) }

// Wake makes the Replayer poll now. It does not block.
func (r *Replayer) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// poll starts a worker for each source with waiting replays, until ctx ends. It returns
// when they have ended.
func (r *Replayer) poll(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	backoff := retry.Backoff{Min: pollInterval, Max: max(pollInterval, r.cfg.PollMax)}
	for ctx.Err() == nil {
		wait := pollInterval
		if err := r.startWorkers(ctx, &workers); err == nil {
			backoff.Reset()
		} else if ctx.Err() == nil {
			r.logger.Warn("poll for requested replays failed", zap.Error(err))
			wait = backoff.Next()
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// startWorkers starts a goroutine for each source with waiting replays that has
// none.
func (r *Replayer) startWorkers(ctx context.Context, workers *sync.WaitGroup) error {
	source := ""
	for {
		next, err := r.store.WaitingSource(ctx, source)
		if err != nil || next == "" {
			return err
		}
		source = next
		r.mu.Lock()
		if !r.busy[next] {
			r.busy[next] = true
			workers.Go(func() { r.replaySource(ctx, next) })
		}
		r.mu.Unlock()
	}
}

// replaySource replays the waiting dead letters of one source, oldest first, until
// none waits.
func (r *Replayer) replaySource(ctx context.Context, source string) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, source)
	}()
	backoff := r.backoff()
	var last int64
	var tries uint32
	for ctx.Err() == nil {
		entry, ok, err := r.store.NextReplay(ctx, source)
		if err != nil || !cluster.Valid(ctx) { // a process that was stopped for a while has lost the job
			backoff.Sleep(ctx)
			continue
		}
		if !ok {
			return
		}
		if entry.ID != last {
			last, tries = entry.ID, 0
			backoff.Reset()
		}
		start := time.Now()
		if !r.settle(ctx, &entry, &tries) {
			backoff.Sleep(ctx)
			continue
		}
		r.yieldToLive(ctx, time.Since(start))
	}
}

func (r *Replayer) backoff() retry.Backoff {
	return retry.Backoff{Min: r.cfg.RetryMin, Max: r.cfg.RetryMax}
}

// yieldToLive leaves four fifths of the time to live events.
func (r *Replayer) yieldToLive(ctx context.Context, took time.Duration) {
	retry.Sleep(ctx, min(4*took, 5*time.Second))
}

// maxTries bounds the attempts of a replay that fails transiently at a sink.
const maxTries = 5

// settle tries to replay a dead letter. It returns false if the replay must be
// tried again; tries counts the failures at the sink.
func (r *Replayer) settle(ctx context.Context, e *deadletter.Entry, tries *uint32) bool {
	deleted, err := r.replay(ctx, e, *tries+1)
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil && deleted:
		r.metrics.CountReplay(e.Source, "arrived")
		return true
	case err == nil:
		return r.retryUntilDone(ctx, func() error {
			return r.store.EndReplay(ctx, e.ID, "It was edited while what it held before was sent.")
		})
	case r.isBlocked(ctx, e, err):
		_ = r.store.SetReplayError(ctx, e.ID, deadletter.Clean(err.Error())) // the next attempt writes it again
		return false
	case fault.From(err) != nil: // no event, or no such sink
		r.metrics.CountReplay(e.Source, "impossible")
		return r.retryUntilDone(ctx, func() error { return r.store.EndReplay(ctx, e.ID, deadletter.Clean(err.Error())) })
	}
	*tries++
	failed, waiting := failedEntry(e, err, *tries)
	r.metrics.CountReplay(e.Source, "failed")
	return r.retryUntilDone(ctx, func() error { return r.store.FailReplay(ctx, failed, waiting) }) && !waiting
}

// failedEntry returns a dead letter with the error of its replay, and whether the
// replay is tried again.
func failedEntry(e *deadletter.Entry, err error, tries uint32) (failed *deadletter.Entry, waiting bool) {
	cause := sdk.AsError(err)
	if !strings.HasPrefix(e.Source, deadletter.SourceSink) {
		cause = &sdk.Error{Class: sdk.ClassPermanent, Code: "error", Message: err.Error()}
	}
	waiting = cause.Class != sdk.ClassPermanent && cause.Class != sdk.ClassUnsupported && tries < maxTries
	return &deadletter.Entry{
		ID: e.ID, FailedAt: time.Now(), Class: cause.Class.String(), Code: cause.Code, Message: deadletter.Clean(cause.Message),
	}, waiting
}

// isBlocked reports whether the replay could not be tried: the sink takes no
// events, or the database is down.
func (r *Replayer) isBlocked(ctx context.Context, e *deadletter.Entry, err error) bool {
	if fault.Is(err, fault.Unavailable) || db.Retryable(err) {
		return true
	}
	return e.Source == deadletter.SourceWorker && fault.From(err) == nil && r.pipeline.IsOutage(ctx, err)
}

// retryUntilDone calls fn until it succeeds; false when ctx ends first.
func (r *Replayer) retryUntilDone(ctx context.Context, fn func() error) bool {
	return retry.Until(ctx, r.backoff(), fn, func(err error) {
		r.logger.Warn("replay outcome write failed; waiting for the database", zap.Error(err))
	})
}

// replay sends the event of a dead letter to its source and deletes the dead
// letter. It returns false without an error if the event arrived and the dead
// letter was edited in the meantime.
func (r *Replayer) replay(ctx context.Context, e *deadletter.Entry, attempt uint32) (deleted bool, err error) {
	ev, err := e.Decode()
	if err != nil {
		return false, err
	}
	sink, ok := strings.CutPrefix(e.Source, deadletter.SourceSink)
	if !ok {
		return true, r.pipeline.Replay(ctx, ev, func(ctx context.Context) (bool, error) {
			return r.store.DeleteIfUnchanged(ctx, e.ID, e.Payload)
		})
	}
	gone := false
	if r.erased != nil {
		if gone, err = r.erased.DroppedAt(ctx, ev.ProjectID, ev.DistinctID, ev.ReceivedAt); err != nil {
			return false, fault.New(fault.Unavailable, "erasures_unknown", "It is not known whether the person was erased.").Because(err)
		}
	}
	if !gone {
		if err := r.delivery.Replay(ctx, sink, ev, e.Seq, attempt); err != nil {
			return false, err
		}
	}
	r.retryUntilDone(ctx, func() error { deleted, err = r.store.DeleteIfUnchanged(ctx, e.ID, e.Payload); return err })
	return deleted, nil
}

package ingestion

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// Replayer sends dead letters again that somebody asked for, each to where it
// could not go before: to the stages of the worker, or to the one sink that
// refused it. A letter that arrives is removed; one that fails again stays,
// with the new error.
//
// What is asked for stands in the database, so it does not matter which
// process was asked, and a crash forgets nothing. Through the stages an event
// goes exactly once: its removal is in the same transaction. To a sink it goes
// at least once, under the same uuid and batch id: a crash between the delivery
// and the removal sends it again.
//
// Each source has a goroutine of its own while it has something to do, so no
// sink waits for another. Live events go first: replays leave them most of the
// time of the sink.
type Replayer struct {
	cfg     Config
	store   *store
	worker  *Worker
	deliver *Deliver
	metrics *Metrics
	logger  *zap.Logger

	woken chan struct{}
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool // sources that have a goroutine
}

// NewReplayer returns a Replayer that has not started.
func NewReplayer(cfg Config, d *db.DB, w *Worker, del *Deliver, m *Metrics, logger *zap.Logger) *Replayer {
	return &Replayer{
		cfg: cfg, store: &store{d}, worker: w, deliver: del, metrics: m, logger: logger.Named("ingestion"),
		woken: make(chan struct{}, 1), busy: make(map[string]bool),
	}
}

// lookEvery is how often the database is asked for replays that another process
// was asked for.
const lookEvery = time.Second

// Start begins to replay. It needs a worker and deliveries that have started,
// and has to be stopped before them.
func (r *Replayer) Start(context.Context) error {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.done.Go(func() { r.watch(ctx) })
	return nil
}

// Stop gives up the replays at hand, which stay asked for, and waits. What a
// sink was sent and has not confirmed is sent again after the next start.
func (r *Replayer) Stop(context.Context) error {
	if r.stop != nil {
		r.stop()
		r.done.Wait()
	}
	return nil
}

// Wake says that there is something to replay. It never blocks.
func (r *Replayer) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// watch sees to it that each source of which something waits is worked on.
func (r *Replayer) watch(ctx context.Context) {
	pause := backoff{least: lookEvery, most: max(lookEvery, r.cfg.Worker.RetryMax)}
	for {
		wait := lookEvery
		if err := r.look(ctx); err == nil {
			pause.reset()
		} else if ctx.Err() == nil {
			r.logger.Warn("cannot look for replays", zap.Error(err))
			wait = pause.pause()
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.woken:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// look starts a goroutine for each source that needs one.
func (r *Replayer) look(ctx context.Context) error {
	source := ""
	for {
		next, err := r.store.waitingSource(ctx, source)
		if err != nil || next == "" {
			return err
		}
		source = next
		r.mu.Lock()
		if !r.busy[next] {
			r.busy[next] = true
			r.done.Go(func() { r.work(ctx, next) })
		}
		r.mu.Unlock()
	}
}

// work replays what waits of one source, oldest first, until nothing does.
func (r *Replayer) work(ctx context.Context, source string) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, source)
	}()
	pause := backoff{least: r.cfg.Deliver.RetryMin, most: r.cfg.Deliver.RetryMax}
	var last int64
	var tries uint32
	for ctx.Err() == nil {
		l, ok, err := r.store.nextReplay(ctx, source)
		if err != nil {
			sleep(ctx, pause.pause())
			continue
		}
		if !ok {
			return
		}
		if l.ID != last {
			last, tries = l.ID, 0
			pause.reset()
		}
		start := time.Now()
		settled := r.settle(ctx, &l, &tries)
		if !settled {
			sleep(ctx, pause.pause())
			continue
		}
		r.yield(ctx, time.Since(start))
	}
}

// yield leaves four fifths of the time to live events.
func (r *Replayer) yield(ctx context.Context, took time.Duration) {
	sleep(ctx, min(4*took, 5*time.Second))
}

// maxTries is how often one replay is tried that a sink fails for a reason that
// may pass.
const maxTries = 5

// settle tries to replay a dead letter. It returns false when it has to be
// tried again; tries counts how often the sink had it and failed.
func (r *Replayer) settle(ctx context.Context, l *DeadLetter, tries *uint32) bool {
	removed, err := r.try(ctx, l, *tries+1)
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil && removed:
		r.count(l, "arrived")
		return true
	case err == nil:
		return r.insist(ctx, func() error { return r.store.endReplay(ctx, l.ID, "It was edited while what it held before was sent.") })
	case r.hindered(ctx, l, err):
		_ = r.store.hinderReplay(ctx, l.ID, clipText(err.Error(), maxMessage)) // said again at the next try
		return false
	case fault.From(err) != nil: // there is nothing, or nowhere to send
		r.count(l, "impossible")
		return r.insist(ctx, func() error { return r.store.endReplay(ctx, l.ID, clipText(err.Error(), maxMessage)) })
	}
	*tries++
	e := sdk.AsError(err)
	again := DeadLetter{ID: l.ID, FailedAt: time.Now(), Class: e.Class.String(), Code: e.Code, Message: clipText(e.Message, maxMessage)}
	toSink := strings.HasPrefix(l.Source, sourceSink)
	if !toSink {
		again.Class, again.Code, again.Message = sdk.ClassPermanent.String(), codeOf(err), clipText(err.Error(), maxMessage)
	}
	waiting := toSink && !hopeless(e) && *tries < maxTries
	r.count(l, "failed")
	return r.insist(ctx, func() error { return r.store.failReplay(ctx, &again, waiting) }) && !waiting
}

func (r *Replayer) count(l *DeadLetter, outcome string) {
	r.metrics.replays.WithLabelValues(l.Source, outcome).Inc()
}

// hindered reports whether the dead letter had no chance: the sink takes
// nothing, or the database is away.
func (r *Replayer) hindered(ctx context.Context, l *DeadLetter, err error) bool {
	if fault.Is(err, fault.Unavailable) || retryable(err) {
		return true
	}
	return l.Source == sourceWorker && fault.From(err) == nil && r.store.probe(ctx) != nil
}

// insist repeats what the database has to do; false when ctx ended before it
// did.
func (r *Replayer) insist(ctx context.Context, do func() error) bool {
	pause := backoff{least: r.cfg.Deliver.RetryMin, most: r.cfg.Deliver.RetryMax}
	for {
		err := do()
		if err == nil {
			return true
		}
		r.logger.Warn("what became of a replay cannot be written down; waiting for the database", zap.Error(err))
		if !sleep(ctx, pause.pause()) {
			return false
		}
	}
}

// try replays a dead letter and removes it. It returns false without an error
// when it arrived but was edited meanwhile.
func (r *Replayer) try(ctx context.Context, l *DeadLetter, attempt uint32) (removed bool, err error) {
	ev, err := l.event()
	if err != nil {
		return false, err
	}
	sink, ok := strings.CutPrefix(l.Source, sourceSink)
	if !ok {
		return true, r.worker.Replay(ctx, ev, func(ctx context.Context) (bool, error) {
			return r.store.takeLetter(ctx, l.ID, l.Payload)
		})
	}
	if err := r.deliver.Replay(ctx, sink, ev, l.Seq, attempt); err != nil {
		return false, err
	}
	r.insist(ctx, func() error { removed, err = r.store.takeLetter(ctx, l.ID, l.Payload); return err })
	return removed, nil
}

// Replay takes one event through the stages, once take says in the same
// transaction that it is still there to be taken. An event that is known
// already is only taken.
func (w *Worker) Replay(ctx context.Context, ev sdk.Event, take func(ctx context.Context) (bool, error)) error {
	return w.guarded(ctx, func(ctx context.Context, _ *collector) error {
		if ok, err := take(ctx); err != nil || !ok {
			return err
		}
		batch, err := w.unknown(ctx, []*sdk.Event{&ev})
		if err != nil || len(batch) == 0 {
			return err
		}
		return w.through(ctx, batch)
	})
}

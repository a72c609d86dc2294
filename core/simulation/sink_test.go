package simulation_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/simulation"
	"github.com/guidonhq/guidon/sdk"
)

const (
	sinkTimeout  = 5 * time.Second
	sinkRetryMin = 100 * time.Millisecond // the default
	sinkRetryMax = 3 * time.Second
)

// destination is what a sink writes to. It outlives processes and plugins.
type destination struct {
	world *world
	name  string
	props sdk.SinkProperties

	has map[string]bool // by uuid; the oracle's mutex guards it
}

// store stores events, each the first time.
func (d *destination) store(list []sdk.Event) {
	d.world.oracle.mu.Lock()
	defer d.world.oracle.mu.Unlock()
	for i := range list {
		if id := list[i].UUID; !d.has[id] {
			d.has[id] = true
			d.world.oracle.checkOrder(d, id)
		}
	}
}

// refuses reports whether the destination never takes an event of that name.
func (d *destination) refuses(name string) bool {
	return name == rejectPrefix+d.name || name == crashPrefix+d.name
}

type sinkSet []delivery.Sink

func (s sinkSet) Sinks() []delivery.Sink   { return s }
func (s sinkSet) Changed() <-chan struct{} { return nil }

// plugin is the sink of a destination in one process.
type plugin struct {
	*destination

	process *simulation.Process

	lock     sync.Mutex
	session  uint64
	staged   []sdk.Event
	seqs     []uint64        // of staged
	keys     map[string]bool // distinct ids in flight
	calls    int
	failures map[string]failure // by batch id
}

// failure is the last failed attempt for a batch.
type failure struct {
	attempt uint32
	at      time.Time
	wait    time.Duration // asked for
}

func newPlugin(d *destination, p *simulation.Process) *plugin {
	return &plugin{destination: d, process: p, session: 1, keys: map[string]bool{}, failures: map[string]failure{}}
}

func (p *plugin) Name() string                   { return p.name }
func (p *plugin) Properties() sdk.SinkProperties { return p.props }

func (p *plugin) Session() uint64 {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.session
}

func (p *plugin) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.process.Sleep(ctx, time.Microsecond)
}

// die ends the plugin's process: what is staged is lost.
func (p *plugin) die() *sdk.Error {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.session++
	p.staged, p.seqs = nil, nil
	return &sdk.Error{Class: sdk.ClassTransient, Code: "plugin_unavailable", Message: "the process ended"}
}

func (p *plugin) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	list, err := b.Events()
	if err != nil {
		panic(err)
	}
	p.begin(b, list)
	defer p.end(list)
	draw := p.world.plan.Draw(p.name + " write")
	latency := time.Duration(draw.Int64N(int64(200 * time.Millisecond)))
	if p.world.plan.IsCalm() {
		latency = time.Duration(draw.Int64N(int64(time.Millisecond)))
	}
	before := p.Session()
	result, err := p.answer(ctx, draw, latency, b, list)
	p.world.tracef("%s write %d-%d attempt %d session %d->%d: %s %v", p.name, b.FirstSeq, b.LastSeq, b.Attempt, before, p.Session(), result.Outcome, err)
	if e := sdk.AsError(err); err != nil || result.Outcome == sdk.Rejected {
		if err == nil {
			e = result.Err
		}
		p.lock.Lock()
		p.failures[b.ID] = failure{b.Attempt, time.Now(), e.RetryAfter}
		p.lock.Unlock()
	}
	return result, err
}

// begin checks what may be in flight, and the pause since the last attempt.
func (p *plugin) begin(b *sdk.Batch, list []sdk.Event) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.calls++
	most := p.props.MaxInFlight
	if p.props.Ordering == sdk.OrderTotal || p.props.Commit == sdk.CommitOnFlush {
		most = 1
	}
	if p.calls > most {
		p.world.failf("sink %s has %d calls at once, want at most %d", p.name, p.calls, most)
	}
	if len(list) > p.props.MaxEvents {
		p.world.failf("sink %s gets %d events at once, want at most %d", p.name, len(list), p.props.MaxEvents)
	}
	mine := map[string]bool{}
	for i := range list {
		if id := list[i].DistinctID; p.keys[id] {
			p.world.failf("sink %s has two batches of %s in flight", p.name, id)
		} else {
			mine[id] = true
		}
	}
	for id := range mine {
		p.keys[id] = true
	}
	f, failed := p.failures[b.ID]
	if !failed || b.Attempt != f.attempt+1 {
		return
	}
	if pause, least := time.Since(f.at), max(f.wait, sinkRetryMin/2); pause < least {
		p.world.failf("sink %s: attempt %d comes %s after the failure, want at least %s", p.name, b.Attempt, pause, least)
	}
	if pause, most := time.Since(f.at), max(f.wait, sinkRetryMax)+5*sinkTimeout; pause > most {
		p.world.failf("sink %s: attempt %d comes %s after the failure, want at most %s", p.name, b.Attempt, pause, most)
	}
}

func (p *plugin) end(list []sdk.Event) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.calls--
	for i := range list {
		delete(p.keys, list[i].DistinctID)
	}
}

// answer handles a batch.
func (p *plugin) answer(ctx context.Context, d *rand.Rand, latency time.Duration, b *sdk.Batch, list []sdk.Event) (sdk.WriteResult, error) {
	crashes := slices.ContainsFunc(list, func(e sdk.Event) bool { return e.Name == crashPrefix+p.name })
	kind := d.IntN(100)
	if p.world.plan.IsCalm() {
		kind = 50
	}
	if kind < 6 {
		return p.answerLate(ctx, d, list)
	}
	if err := p.process.Sleep(ctx, latency); err != nil {
		return sdk.WriteResult{}, err
	}
	rejected := slices.IndexFunc(list, func(e sdk.Event) bool { return e.Name == rejectPrefix+p.name })
	switch {
	case crashes, p.world.plan.Rare(p.name+" dies", 0.03, 30):
		return sdk.WriteResult{}, p.die()
	case kind < 12:
		return reject(sdk.Errorf(sdk.ClassTransient, "busy", "try again"))
	case kind < 15:
		e := sdk.Errorf(sdk.ClassThrottled, "throttled", "too much")
		e.RetryAfter = 100*time.Millisecond + time.Duration(d.Int64N(int64(3*time.Second)))
		return reject(e)
	case kind < 18:
		if p.props.Commit != sdk.CommitOnFlush && rejected < 0 {
			p.store(list) // and the answer is lost
		}
		return sdk.WriteResult{}, simulation.ErrInjected
	case kind < 19:
		return sdk.WriteResult{Outcome: sdk.Partial}, nil // violates the contract
	case kind < 24 && p.props.Commit != sdk.CommitOnFlush:
		return p.answerPartly(d, b, list)
	case rejected >= 0 && (kind%2 == 0 || p.props.Commit == sdk.CommitOnFlush):
		return reject(sdk.Errorf(sdk.ClassPermanent, "invalid", "never"))
	case rejected >= 0:
		return p.answerPartly(nil, b, list)
	case p.props.Commit == sdk.CommitOnFlush:
		return p.stage(b, list)
	}
	p.store(list)
	return b.Committed(), nil
}

func reject(e *sdk.Error) (sdk.WriteResult, error) {
	return sdk.WriteResult{Outcome: sdk.Rejected, Err: e}, nil
}

// answerLate handles a batch after the host has given the call up. The host may be
// gone by then, too.
func (p *plugin) answerLate(ctx context.Context, d *rand.Rand, list []sdk.Event) (sdk.WriteResult, error) {
	late := time.Duration(d.Int64N(int64(4 * sinkTimeout)))
	stores := p.props.Commit != sdk.CommitOnFlush && !slices.ContainsFunc(list, func(e sdk.Event) bool { return p.refuses(e.Name) }) && d.IntN(3) > 0
	p.world.oracle.late.Go(func() {
		time.Sleep(late)
		if stores {
			p.store(list)
		}
	})
	if err := p.process.Sleep(ctx, late+time.Millisecond); err != nil {
		return sdk.WriteResult{}, err
	}
	return sdk.WriteResult{}, simulation.ErrInjected
}

// answerPartly stores some events: with d each distinct id up to a random event, nil
// stores all that can be.
func (p *plugin) answerPartly(d *rand.Rand, b *sdk.Batch, list []sdk.Event) (sdk.WriteResult, error) {
	var failures []sdk.Failure
	var stored []sdk.Event
	failed := map[string]bool{}
	for i := range list {
		failed[list[i].DistinctID] = failed[list[i].DistinctID] || d != nil && d.IntN(4) == 0
		switch {
		case p.refuses(list[i].Name):
			failures = append(failures, sdk.Failure{Index: i, Err: sdk.Errorf(sdk.ClassPermanent, "invalid", "never")})
		case failed[list[i].DistinctID]:
			failures = append(failures, sdk.Failure{Index: i, Err: sdk.Errorf(sdk.ClassTransient, "busy", "later")})
		default:
			stored = append(stored, list[i])
		}
	}
	p.store(stored)
	if len(failures) == 0 {
		return b.Committed(), nil
	}
	return b.Partial(failures...), nil
}

func (p *plugin) Flush(ctx context.Context, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	before := p.Session()
	result, err := p.flush(ctx, upTo)
	p.world.tracef("%s flush %d for reason %d session %d->%d: through %d, %v", p.name, upTo, reason, before, p.Session(), result.CommittedThrough, err)
	return result, err
}

func (p *plugin) flush(ctx context.Context, upTo uint64) (sdk.FlushResult, error) {
	d := p.world.plan.Draw(p.name + " flush")
	kind := d.IntN(100)
	if p.world.plan.IsCalm() {
		kind = 50
	}
	if err := p.process.Sleep(ctx, time.Duration(d.Int64N(int64(100*time.Millisecond)))); err != nil {
		return sdk.FlushResult{}, err
	}
	if kind < 5 || p.world.plan.Rare(p.name+" dies", 0.05, 10) {
		if kind%2 == 0 {
			p.commitStaged()
		}
		return sdk.FlushResult{}, p.die()
	}
	if kind < 10 {
		return sdk.FlushResult{}, simulation.ErrInjected
	}
	if kind < 15 {
		if err := p.process.Sleep(ctx, 2*sinkTimeout); err != nil {
			return sdk.FlushResult{}, err
		}
	}
	return sdk.FlushResult{CommittedThrough: min(p.commitStaged(), upTo)}, nil
}

// stage stages a batch. It replaces what is staged from its first number on, as the
// contract demands.
func (p *plugin) stage(b *sdk.Batch, list []sdk.Event) (sdk.WriteResult, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	n, _ := slices.BinarySearch(p.seqs, b.FirstSeq)
	p.staged, p.seqs = p.staged[:n], p.seqs[:n]
	for i := range list {
		p.staged, p.seqs = append(p.staged, list[i]), append(p.seqs, b.FirstSeq+uint64(i))
	}
	return b.Staged(0), nil
}

// commitStaged stores the staged events and returns the last sequence number.
func (p *plugin) commitStaged() (to uint64) {
	p.lock.Lock()
	list, seqs := p.staged, p.seqs
	p.staged, p.seqs = nil, nil
	p.lock.Unlock()
	p.store(list)
	if len(seqs) > 0 {
		to = seqs[len(seqs)-1]
	}
	return to
}

// sinkOf returns the name of the sink of a reader, and whether it reads imports.
func sinkOf(reader string) (name string, historical, ok bool) {
	name, historical = strings.CutPrefix(reader, "historical/")
	name, ok = strings.CutPrefix(name, "sink/")
	return name, historical, ok
}

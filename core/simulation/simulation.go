// Package simulation runs components of the server in virtual time with injected
// failures, for tests.
//
// A test runs in a bubble of testing/synctest: its clock moves when every goroutine
// waits. The components are real; the journal is a list in memory, the database is a
// SQLite file behind a driver that fails, and plugins are functions. A Plan draws from
// its seed, for each operation, how long it takes and whether it fails, is done without
// an answer, or ends the process. A Process is one run of the server: when it ends, its
// operations fail and have no effect, as if the server had been killed, and the test
// starts the next one on the same journal, file and destinations.
//
// The seed determines each decision by the name and the count of its operation, not by
// the order of goroutines. Each operation takes a different number of nanoseconds, so
// that few goroutines are ready at one time. What Go's scheduler, select and the jitter of
// backoffs choose differs between runs of a seed: a failure usually repeats within a few
// of them.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// ErrInjected is wrapped by each injected failure. It looks like a lost connection.
var ErrInjected = fmt.Errorf("injected failure: %w", io.ErrUnexpectedEOF)

// ErrEnded is the error of each operation of a process that has ended.
var ErrEnded = errors.New("the process has ended")

// Plan draws the decisions of a simulation from a seed. Its methods are safe for
// concurrent use.
type Plan struct {
	seed uint64
	calm atomic.Bool

	mu     sync.Mutex
	counts map[string]uint64
	last   map[string]uint64 // the count of an operation that failed last
}

// NewPlan returns the plan of a seed.
func NewPlan(seed uint64) *Plan {
	return &Plan{seed: seed, counts: map[string]uint64{}, last: map[string]uint64{}}
}

// Draw returns random numbers for the next operation of that name. The result is for
// one goroutine.
func (p *Plan) Draw(operation string) *rand.Rand {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[operation]++
	h := fnv.New64a()
	_, _ = io.WriteString(h, operation) // never fails
	return rand.New(rand.NewPCG(p.seed^h.Sum64(), p.counts[operation]))
}

// Calm ends the injection of failures. Operations take a short time from now on.
func (p *Plan) Calm() { p.calm.Store(true) }

// IsCalm reports whether Calm was called.
func (p *Plan) IsCalm() bool { return p.calm.Load() }

// Rare reports, with a probability, that something happens to the next operation of
// that name, and never in two of apart operations: what a component tolerates once
// does not come so often that it must give up.
func (p *Plan) Rare(operation string, probability float64, apart uint64) bool {
	if p.IsCalm() || p.Draw(operation).Float64() >= probability {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.counts[operation]
	if last := p.last[operation]; last > 0 && n-last < apart {
		return false
	}
	p.last[operation] = n
	return true
}

// Rates are how often things happen to the operations of a process.
type Rates struct {
	// Fail is the share of operations that fail without an effect.
	Fail float64
	// Lose is the share of operations that are done and return an error.
	Lose float64
	// End is the share of operations at which the process ends, before or after
	// their effect.
	End float64
	// Slow is the longest time that an operation takes; most take a thousandth. 0
	// takes no time.
	Slow time.Duration
}

// Process is one run of the server. Its methods are safe for concurrent use.
type Process struct {
	plan  *Plan
	name  string
	once  sync.Once
	ended chan struct{}
	down  atomic.Bool
	fast  bool // statements take no time
}

// NewProcess returns a process that runs. Its name is part of the names of its
// operations, so that two processes have different failures.
func NewProcess(p *Plan, name string) *Process {
	return &Process{plan: p, name: name, ended: make(chan struct{})}
}

// End ends the process: each operation fails, also those under way, unless their
// effect is done.
func (p *Process) End() { p.once.Do(func() { close(p.ended) }) }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// SetOutage begins or ends an outage of the database of the process.
func (p *Process) SetOutage(down bool) { p.down.Store(down) }

// WithFastSQL makes statements take no time and returns p. It is for components that use
// the connection for writing from several goroutines: database/sql makes them wait for
// each other with mutexes, and a goroutine that waits for a mutex stops the clock.
func (p *Process) WithFastSQL() *Process {
	p.fast = true
	return p
}

// HasEnded reports whether the process has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Sleep waits for a time. It returns ErrEnded if the process ends, and the error of ctx
// if that ends first.
func (p *Process) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.HasEnded() {
		return ErrEnded
	}
	return nil
}

// Do runs an operation with that name: it takes time, then apply has its effect, and
// either may be left out or end the process.
func (p *Process) Do(operation string, r Rates, apply func() error) error {
	operation = p.name + " " + operation
	d := p.plan.Draw(operation)
	if r.Slow == 0 {
		return p.decide(operation, d, r, apply)
	}
	wait := r.Slow/1000 + time.Duration(d.Int64N(int64(r.Slow/1000)+1000))
	if !p.plan.IsCalm() && d.Float64() < 0.02 {
		wait += time.Duration(d.Int64N(int64(r.Slow) + 1))
	}
	// An operation is not interrupted by its context: the caller finds its effect done.
	if err := p.Sleep(context.Background(), wait); err != nil {
		return err
	}
	return p.decide(operation, d, r, apply)
}

// decide applies an operation that has taken its time, or does not.
func (p *Process) decide(operation string, d *rand.Rand, r Rates, apply func() error) error {
	if p.HasEnded() {
		return ErrEnded
	}
	if p.plan.IsCalm() {
		return apply()
	}
	end := d.Float64() < r.End
	if end && d.IntN(2) == 0 {
		p.End()
		return ErrEnded
	}
	if r.Fail > 0 && p.plan.Rare(operation+" fails", r.Fail, 60) {
		return ErrInjected
	}
	err := apply()
	if end {
		p.End()
		return ErrEnded
	}
	if err == nil && r.Lose > 0 && p.plan.Rare(operation+" is lost", r.Lose, 10) {
		return ErrInjected
	}
	return err
}

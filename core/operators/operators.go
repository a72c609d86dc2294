// Package operators knows the operators that matcher plugins bring, such as
// cidr/contains, and asks the plugins about them for flags and actions.
//
// A filter is compiled by the plugin once, when it is saved or loaded. After
// that a question (does this value pass that filter?) is answered from memory
// when the plugin has answered it before and its operator says that this is
// still true; what is left of a request goes to each plugin in one call, to all
// plugins at once, and never takes longer than the caller's deadline. A plugin
// that is slow, gone, full or wrong costs that deadline a few times and then
// nothing: the answer is that nobody knows.
//
// The file offer.go says who offers what, compile.go is about values, ask.go
// about questions, lane.go keeps a bad plugin from hurting, and round.go
// answers for actions.
package operators

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// Operators are the operators of all matcher plugins. Its methods may be called
// from any number of goroutines.
type Operators struct {
	cfg   Config
	list  func() []Matcher
	known func(plugin string) []sdk.Operator
	log   *zap.Logger
	meter *meter

	offers  atomic.Pointer[offers]
	mu      sync.Mutex // for making offers
	plugins map[string]*plugin

	results  *otter.Cache[question, answer]
	recent   *recent
	outcomes *otter.Cache[value, outcome]
	waiting  atomic.Bool // a value could not be compiled yet
	moved    atomic.Bool // offers are other ones than those last told of

	changed []func(ctx context.Context)
	stop    context.CancelFunc
	done    chan struct{}
}

// New returns the operators of the matchers that list returns, which may be
// other ones at each call. known returns what a plugin offers before it was ever
// started, or nil; it may be nil itself. A nil log is silent, a nil reg counts
// nothing.
func New(cfg Config, list func() []Matcher, known func(plugin string) []sdk.Operator, log *zap.Logger, reg prometheus.Registerer) (*Operators, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	if known == nil {
		known = func(string) []sdk.Operator { return nil }
	}
	o := &Operators{cfg: cfg, list: list, known: known, log: log.Named("operators"), meter: newMeter(reg), plugins: map[string]*plugin{}, recent: newRecent()}
	var err error
	if o.results, err = newResults(cfg.CacheBytes); err != nil {
		return nil, err
	}
	if o.outcomes, err = newOutcomes(); err != nil {
		return nil, err
	}
	o.offers.Store(&offers{})
	o.look()
	o.moved.Store(false)
	return o, nil
}

// OnChange has fn called when filters may mean something else than before:
// operators have come, gone or changed, or values can be compiled that could not
// be. It must be called before Start.
func (o *Operators) OnChange(fn func(ctx context.Context)) { o.changed = append(o.changed, fn) }

// lookEvery is how often the plugins are looked at.
const lookEvery = 100 * time.Millisecond

// Start follows the plugins until Stop.
func (o *Operators) Start(ctx context.Context) error {
	ctx, o.stop = context.WithCancel(context.WithoutCancel(ctx))
	o.done = make(chan struct{})
	go o.follow(ctx)
	return nil
}

// Stop ends that.
func (o *Operators) Stop(ctx context.Context) error {
	if o.stop == nil {
		return nil
	}
	o.stop()
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// How long values wait that could not be compiled, although their plugin runs.
const (
	firstPatience = time.Second
	lastPatience  = 30 * time.Second
)

// follow tells of changes. Values that could not be compiled are tried again as
// soon as a plugin comes, and then less and less often.
func (o *Operators) follow(ctx context.Context) {
	defer close(o.done)
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	patience, again := firstPatience, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		o.look()
		changed := o.moved.Swap(false)
		if changed {
			patience, again = firstPatience, time.Now()
		}
		if !changed && (!o.waiting.Load() || time.Now().Before(again) || !o.anyAvailable()) {
			continue
		}
		o.waiting.Store(false)
		for _, fn := range o.changed {
			fn(ctx)
		}
		again = time.Now().Add(patience)
		patience = min(2*patience, lastPatience)
	}
}

// Package operators makes the operators of matcher plugins, such as cidr/contains,
// available to flags and actions.
//
// The plugin compiles a filter value once, when the filter is saved or loaded. After
// that a pair (does this value pass that filter?) is read from a cache when the plugin
// has evaluated it before and its operator declares the result valid that long. The
// remaining pairs of a request go to each plugin in one call, to all plugins
// concurrently, and never take longer than the caller's deadline. A plugin that is
// slow, away, overloaded or broken costs that deadline a few times; then a circuit
// breaker returns Unknown immediately.
//
// index.go knows which plugin has which operator, compile.go compiles values,
// request.go makes calls, limiter.go limits them, results.go and recent.go cache
// results, and round.go serves actions.
package operators

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// Operators are the operators of all matcher plugins. Its methods are safe for
// concurrent use. It joins the index of operators, the compiled programs and the
// cache of results, which change together when a plugin does.
type Operators struct {
	cfg     Config
	list    func() []Matcher
	bundled func(plugin string) []sdk.Operator
	log     *zap.Logger
	meter   *meter

	index   atomic.Pointer[operatorIndex]
	mu      sync.Mutex // guards the refresh of index, and plugins
	plugins map[string]*plugin

	results      *otter.Cache[cacheKey, cachedResult]
	recent       *recentResults
	compiled     *otter.Cache[compileKey, compileResult]
	uncompiled   atomic.Bool // a value could not be compiled yet
	indexChanged atomic.Bool // since the last call of onChange

	onChange  []func(ctx context.Context)
	onAnswers []func(ctx context.Context) error

	answerTimes answerTimes
	service     retry.Service
}

// New returns the operators of the matchers that list returns, which may change between
// calls. bundled returns the operators of a plugin that never ran, or nil; it may be
// nil. Nil log and reg disable logging and metrics.
func New(cfg Config, list func() []Matcher, bundled func(plugin string) []sdk.Operator, log *zap.Logger, reg prometheus.Registerer) (*Operators, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	if bundled == nil {
		bundled = func(string) []sdk.Operator { return nil }
	}
	o := &Operators{cfg: cfg, list: list, bundled: bundled, log: log.Named("operators"), meter: newMeter(reg), plugins: map[string]*plugin{}, recent: newRecentResults(), answerTimes: defaultAnswerTimes}
	var err error
	if o.results, err = newResults(cfg.CacheBytes); err != nil {
		return nil, err
	}
	if o.compiled, err = newCompileCache(); err != nil {
		return nil, err
	}
	o.index.Store(&operatorIndex{})
	o.refreshIndex()
	o.indexChanged.Store(false)
	return o, nil
}

// OnChange registers a function that is called when stored filters must be compiled
// again: operators were added, removed or changed, or a plugin is back that could not
// check values. It must be called before Start.
func (o *Operators) OnChange(fn func(ctx context.Context)) { o.onChange = append(o.onChange, fn) }

// refreshInterval is the interval of index refreshes, idleInterval that without
// operators.
const (
	refreshInterval = 100 * time.Millisecond
	idleInterval    = 500 * time.Millisecond
)

// Start watches the plugins until Stop.
func (o *Operators) Start(context.Context) error {
	o.service.Start()
	o.service.Go(func(drainCtx, _ context.Context) { o.watchPlugins(drainCtx) })
	first := o.answerState()
	o.service.Go(func(drainCtx, _ context.Context) { o.watchAnswers(drainCtx, first) })
	return nil
}

// Stop ends the watch and waits for running functions of OnChange and OnAnswers.
func (o *Operators) Stop(ctx context.Context) error { return o.service.Stop(ctx) }

// The pauses between attempts to compile values whose plugin runs.
const (
	minCompilePause = time.Second
	maxCompilePause = 30 * time.Second
)

// watchInterval is the time to the next refresh of the index.
func (o *Operators) watchInterval() time.Duration {
	if o.hasPlugins() || o.uncompiled.Load() {
		return refreshInterval
	}
	return idleInterval
}

func (o *Operators) hasPlugins() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.plugins) > 0
}

// watchPlugins refreshes the index and calls the functions of OnChange: after a change,
// and with growing pauses while there are values to compile.
func (o *Operators) watchPlugins(ctx context.Context) {
	pause, next := minCompilePause, time.Now()
	for retry.SleepAligned(ctx, o.watchInterval()) {
		o.refreshIndex()
		changed := o.indexChanged.Swap(false)
		if changed {
			pause, next = minCompilePause, time.Now()
		}
		if !changed && (!o.uncompiled.Load() || time.Now().Before(next) || !o.anyAvailable()) {
			continue
		}
		o.uncompiled.Store(false)
		for _, fn := range o.onChange {
			fn(ctx)
		}
		next = time.Now().Add(pause)
		pause = min(2*pause, maxCompilePause)
	}
}

// Package snapshot keeps values that are loaded from a store in memory and
// follows their changes.
//
// Hot paths read definitions (flags, actions, cohorts, keys) many thousand
// times a second and other processes change them a few times a day. So a Map
// holds one immutable value per key. Readers take the current value from an
// atomic pointer, without a lock. One goroutine polls the revisions of all keys
// with one cheap query, loads the keys whose revision has changed, and swaps
// their values.
//
// Guarantees:
//   - A change of another process is visible within the poll interval plus the
//     time of a load, and with WakeBy as soon as its channel receives.
//   - After Refresh returns nil, each later Get sees at least what was committed
//     before the call.
//   - Of two loads of a key the newer one stays: loads of a key run one after
//     the other. Loads of different keys never wait for each other.
//   - A failed poll or load keeps the last good value.
//
// It does not bound the number of keys and never drops one.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guidonhq/guidon/core/retry"
)

// Options describes where the values come from. Load is required, and Revisions
// as well unless the map is never polled.
type Options[K comparable, V any] struct {
	// Revisions returns the revision of each key that has a value. The revision
	// of a key changes with each committed change, of whichever process. It is
	// called once an interval.
	Revisions func(ctx context.Context) (map[K]int64, error)

	// Load reads the value of a key and its revision, which it reads before or
	// together with the value; 0 stands for the polled one. old is the value to
	// be replaced, for reuse of its parts; the zero value if there is none or if
	// everything is to be loaded again. Values are immutable once returned.
	Load func(ctx context.Context, key K, old V) (value V, revision int64, err error)

	// Interval is the time between polls; 0 is 500 ms.
	Interval time.Duration

	// Lazy loads a key when GetOrLoad asks for it first. Polls reload only keys
	// that were loaded. By default polls load every key of Revisions.
	Lazy bool

	// OnFailure is called when polling begins to fail, OnRecovery when it works
	// again, both from the polling goroutine. They may be nil.
	OnFailure  func(error)
	OnRecovery func()
}

// Map is the values by key. Its methods are safe for concurrent use.
type Map[K comparable, V any] struct {
	opts    Options[K, V]
	entries atomic.Pointer[map[K]*entry[V]]
	adding  sync.Mutex // serializes additions to entries
	wake    <-chan struct{}
	service retry.Service
	failing bool // the last poll failed; of the polling goroutine
}

// entry is one key. The fields below loading are guarded by it.
type entry[V any] struct {
	value   atomic.Pointer[V] // nil before the first load
	started atomic.Uint64     // number of loads begun
	loading chan struct{}     // a lock whose wait ends with a context

	revision int64
	err      error // of the last load
}

const defaultInterval = 500 * time.Millisecond

// New returns an empty Map. It holds no value before Start, Poll or Refresh.
func New[K comparable, V any](opts Options[K, V]) *Map[K, V] {
	if opts.Interval <= 0 {
		opts.Interval = defaultInterval
	}
	m := &Map[K, V]{opts: opts}
	m.entries.Store(&map[K]*entry[V]{})
	return m
}

// WakeBy makes the map poll also when wake receives, without waiting for the interval.
// It must be called before Start.
func (m *Map[K, V]) WakeBy(wake <-chan struct{}) { m.wake = wake }

// Get returns the current value of a key. It returns false when none was loaded
// yet. It takes no lock and does no I/O.
func (m *Map[K, V]) Get(key K) (V, bool) {
	if e := (*m.entries.Load())[key]; e != nil {
		if v := e.value.Load(); v != nil {
			return *v, true
		}
	}
	var none V
	return none, false
}

// GetOrLoad returns the current value of a key and loads it first if it never
// was.
func (m *Map[K, V]) GetOrLoad(ctx context.Context, key K) (V, error) {
	if v, ok := m.Get(key); ok {
		return v, nil
	}
	err := m.Refresh(ctx, key)
	v, _ := m.Get(key)
	return v, err
}

// Start polls once and then every interval until Stop. It returns the error of
// the first poll; polling continues in that case, too, so that the caller
// decides whether the error is fatal.
func (m *Map[K, V]) Start(ctx context.Context) error {
	err := m.pollAndNotify(ctx)
	m.service.Start()
	m.service.EveryOr(m.opts.Interval, m.wake, func(ctx context.Context) { _ = m.pollAndNotify(ctx) })
	return err
}

// Stop ends polling and waits for the poll that is under way. The values stay.
func (m *Map[K, V]) Stop(ctx context.Context) error { return m.service.Stop(ctx) }

// pollAndNotify polls and calls OnFailure and OnRecovery when the outcome
// differs from the one before.
func (m *Map[K, V]) pollAndNotify(ctx context.Context) error {
	err := m.Poll(ctx)
	if err != nil && ctx.Err() != nil {
		return err // the caller stopped it
	}
	wasFailing := m.failing
	m.failing = err != nil
	switch {
	case m.failing && !wasFailing && m.opts.OnFailure != nil:
		m.opts.OnFailure(err)
	case !m.failing && wasFailing && m.opts.OnRecovery != nil:
		m.opts.OnRecovery()
	}
	return err
}

// Poll loads the keys whose revision has changed since they were loaded. A key
// that cannot be loaded keeps its value and does not affect the others; the
// errors are joined.
func (m *Map[K, V]) Poll(ctx context.Context) error {
	revisions, err := m.opts.Revisions(ctx)
	if err != nil {
		return err
	}
	if !m.opts.Lazy {
		m.add(revisions)
	}
	entries := *m.entries.Load()
	var errs []error
	for key, revision := range revisions {
		if e := entries[key]; e != nil {
			errs = append(errs, m.loadChanged(ctx, key, e, revision))
		}
	}
	return errors.Join(errs...)
}

// loadChanged loads a key unless it was loaded at revision.
func (m *Map[K, V]) loadChanged(ctx context.Context, key K, e *entry[V], revision int64) error {
	if err := e.lock(ctx); err != nil {
		return err
	}
	defer e.unlock()
	if e.revision == revision && e.value.Load() != nil {
		return nil
	}
	return m.load(ctx, key, e, revision, e.current())
}

// Refresh loads one key now. Calls that wait for the same load share its
// result.
func (m *Map[K, V]) Refresh(ctx context.Context, key K) error {
	e := m.entry(key)
	started := e.started.Load()
	if err := e.lock(ctx); err != nil {
		return err
	}
	defer e.unlock()
	if e.started.Load() > started && e.err == nil {
		return nil // another call loaded it after this one began
	}
	return m.load(ctx, key, e, 0, e.current())
}

// RefreshAll loads all keys again from scratch: Load gets no old values. It is
// for changes of what values are made with, such as the operators of plugins.
func (m *Map[K, V]) RefreshAll(ctx context.Context) error {
	var errs []error
	for key, e := range *m.entries.Load() {
		errs = append(errs, m.reload(ctx, key, e))
	}
	return errors.Join(errs...)
}

func (m *Map[K, V]) reload(ctx context.Context, key K, e *entry[V]) error {
	if err := e.lock(ctx); err != nil {
		return err
	}
	defer e.unlock()
	var none V
	return m.load(ctx, key, e, 0, none)
}

// load replaces the value of an entry, whose lock the caller holds. polled is
// the revision that was read before, 0 if none was: a revision that Load does
// not know is then 0, and the next poll loads once more.
func (m *Map[K, V]) load(ctx context.Context, key K, e *entry[V], polled int64, old V) error {
	e.started.Add(1)
	value, revision, err := m.opts.Load(ctx, key, old)
	if e.err = err; err != nil {
		return fmt.Errorf("load %v: %w", key, err)
	}
	if revision == 0 {
		revision = polled
	}
	e.revision = revision
	e.value.Store(&value)
	return nil
}

func (m *Map[K, V]) entry(key K) *entry[V] {
	if e := (*m.entries.Load())[key]; e != nil {
		return e
	}
	m.add(map[K]int64{key: 0})
	return (*m.entries.Load())[key]
}

// add makes entries for the keys that have none. It copies the map, so that
// readers need no lock.
func (m *Map[K, V]) add(keys map[K]int64) {
	m.adding.Lock()
	defer m.adding.Unlock()
	old := *m.entries.Load()
	var next map[K]*entry[V]
	for key := range keys {
		if old[key] != nil {
			continue
		}
		if next == nil {
			next = maps.Clone(old)
		}
		next[key] = &entry[V]{loading: make(chan struct{}, 1)}
	}
	if next != nil {
		m.entries.Store(&next)
	}
}

// lock waits for the loads of the entry that are under way.
func (e *entry[V]) lock(ctx context.Context) error {
	select {
	case e.loading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *entry[V]) unlock() { <-e.loading }

// current returns the value to be replaced, the zero value if there is none.
func (e *entry[V]) current() V {
	if v := e.value.Load(); v != nil {
		return *v
	}
	var none V
	return none
}

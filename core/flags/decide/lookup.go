package decide

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// The kinds of lookups. Each has a cooldown of its own after a failure.
const (
	lookupPerson = iota
	lookupGroup
	lookupStaticCohorts
	lookupHashKeys
)

var lookupNames = [...]string{lookupPerson: "person", lookupGroup: "group", lookupStaticCohorts: "cohort", lookupHashKeys: "hash_key"}

// failuresBeforePause is how many lookups in a row fail before requests skip the
// store: one slow lookup must not leave out the flags of other requests.
const failuresBeforePause = 5

// cooldown keeps requests away from a store whose lookups failed in a row.
type cooldown struct {
	until    atomic.Int64
	failures atomic.Int32 // in a row
}

// recordSuccess ends the pause. It writes only after a failure: all requests share
// the cooldown.
func (c *cooldown) recordSuccess() {
	if c.failures.Load() != 0 {
		c.failures.Store(0)
		c.until.Store(0)
	}
}

// recordFailure begins a pause after enough failures. The first lookup after a
// pause that fails begins the next one.
func (c *cooldown) recordFailure(pause time.Duration) {
	if c.failures.Add(1) >= failuresBeforePause {
		c.until.Store(time.Now().Add(pause).UnixNano())
	}
}

// lookupNeeded looks up everything that e needs, and reports whether it needed
// anything. Identifiers are passed as copies: stores may keep them, and the
// memory of the request is reused.
func (d *Decider) lookupNeeded(ctx context.Context, projectID int64, e *eval.Evaluation, pluginDeadline *time.Time) bool {
	found := false
	if e.NeedsPerson() {
		found = true
		d.lookupPerson(ctx, projectID, e)
	}
	for i := range e.Groups() {
		if e.NeedsGroup(i) {
			found = true
			d.lookupGroup(ctx, projectID, e, i)
		}
	}
	if e.NeedsStaticCohorts() {
		found = true
		d.lookupStaticCohorts(ctx, projectID, e)
	}
	if e.NeedsHashKeys() {
		found = true
		d.lookupHashKeys(ctx, projectID, e)
	}
	if e.HasOpenPairs() {
		found = true
		d.askPlugins(ctx, e, pluginDeadline)
	}
	return found
}

func (d *Decider) lookupPerson(ctx context.Context, projectID int64, e *eval.Evaluation) {
	e.EndPersonLookup(d.lookup(ctx, lookupPerson, func(ctx context.Context) error {
		raw, found, err := d.lookups.People.Properties(ctx, projectID, strings.Clone(e.DistinctID()))
		if err != nil || !found {
			return err
		}
		return e.FillPerson(raw)
	}))
}

func (d *Decider) lookupGroup(ctx context.Context, projectID int64, e *eval.Evaluation, i int) {
	e.EndGroupLookup(i, d.lookup(ctx, lookupGroup, func(ctx context.Context) error {
		typeName, key := e.Group(i)
		raw, found, err := d.lookups.People.GroupProperties(ctx, projectID, typeName, strings.Clone(key))
		if err != nil || !found {
			return err
		}
		return e.FillGroup(i, raw)
	}))
}

func (d *Decider) lookupStaticCohorts(ctx context.Context, projectID int64, e *eval.Evaluation) {
	var ids []int64
	ok := d.lookup(ctx, lookupStaticCohorts, func(ctx context.Context) (err error) {
		ids, err = d.lookups.Memberships.StaticCohorts(ctx, projectID, strings.Clone(e.DistinctID()))
		return err
	})
	e.EndStaticCohortLookup(ids, ok)
}

func (d *Decider) lookupHashKeys(ctx context.Context, projectID int64, e *eval.Evaluation) {
	var keys map[string]string
	ok := d.lookup(ctx, lookupHashKeys, func(ctx context.Context) (err error) {
		keys, err = d.lookups.HashKeys.HashKeys(ctx, projectID, strings.Clone(e.DistinctID()), strings.Clone(e.AnonymousIDToKeep()), e.ContinuousKeys())
		return err
	})
	e.EndHashKeyLookup(keys, ok)
}

// askPlugins passes the open pairs to plugins. All calls of a request share one
// deadline: the configured time, or a quarter of the time that is left for the
// request if that is less.
func (d *Decider) askPlugins(ctx context.Context, e *eval.Evaluation, deadline *time.Time) {
	if deadline.IsZero() {
		wait := d.cfg.PluginTimeout
		if end, ok := ctx.Deadline(); ok {
			wait = min(wait, max(0, time.Until(end)/4))
		}
		*deadline = time.Now().Add(wait)
	}
	ctx, cancel := context.WithDeadline(ctx, *deadline)
	defer cancel()
	pairs, results := e.OpenPairs()
	d.lookups.Matchers.MatchPairs(ctx, e.Now(), pairs, results)
}

// lookup runs get with the lookup timeout and reports whether it succeeded. For
// some time after several failures in a row it fails immediately: flags that need
// the data are left out.
func (d *Decider) lookup(ctx context.Context, kind int, get func(ctx context.Context) error) bool {
	start := time.Now()
	c := &d.cooldowns[kind]
	if until := c.until.Load(); until != 0 && start.UnixNano() < until {
		d.metrics.recordLookup(kind, "paused", 0)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.LookupTimeout)
	defer cancel()
	err := get(ctx)
	took := time.Since(start)
	if err == nil {
		c.recordSuccess()
		d.metrics.recordLookup(kind, "ok", took)
		return true
	}
	c.recordFailure(d.cfg.LookupPause)
	d.metrics.recordLookup(kind, "failed", took)
	d.log.Warn("lookup failed: flags that need the data are left out",
		zap.String("data", lookupNames[kind]), zap.Duration("took", took), zap.Error(err))
	return false
}

package decide

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// The kinds of lookups.
const (
	lookupPerson = iota
	lookupGroup
	lookupStaticCohorts
	lookupHashKeys
)

var lookupNames = [...]string{lookupPerson: "person", lookupGroup: "group", lookupStaticCohorts: "cohort", lookupHashKeys: "hash_key"}

// lookupNeeded looks up everything that e needs, and reports whether it needed
// anything. It raises age to that of the oldest known data that it used instead. Identifiers are passed as copies: stores may keep them, and the
// memory of the request is reused.
func (d *Decider) lookupNeeded(ctx context.Context, projectID int64, e *eval.Evaluation, pluginDeadline *time.Time, age *time.Duration) bool {
	found := false
	if e.NeedsPerson() {
		found = true
		*age = max(*age, d.lookupPerson(ctx, projectID, e))
	}
	for i := range e.Groups() {
		if e.NeedsGroup(i) {
			found = true
			*age = max(*age, d.lookupGroup(ctx, projectID, e, i))
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

// lookupPerson reads the stored properties of the person. If that fails, it uses the
// known ones and returns their age.
func (d *Decider) lookupPerson(ctx context.Context, projectID int64, e *eval.Evaluation) (age time.Duration) {
	ok := d.lookup(ctx, lookupPerson, func(ctx context.Context) error {
		raw, found, err := d.lookups.People.Properties(ctx, projectID, strings.Clone(e.DistinctID()))
		if err != nil || !found {
			return err
		}
		return e.FillPerson(raw)
	})
	if !ok && d.lookups.Known != nil {
		k, known := d.lookups.Known.LastProperties(projectID, e.DistinctID())
		age, ok = d.useKnown(lookupPerson, k, known, e.FillPerson)
	}
	e.EndPersonLookup(ok)
	return age
}

// lookupGroup is lookupPerson for a group.
func (d *Decider) lookupGroup(ctx context.Context, projectID int64, e *eval.Evaluation, i int) (age time.Duration) {
	ok := d.lookup(ctx, lookupGroup, func(ctx context.Context) error {
		typeName, key := e.Group(i)
		raw, found, err := d.lookups.People.GroupProperties(ctx, projectID, typeName, strings.Clone(key))
		if err != nil || !found {
			return err
		}
		return e.FillGroup(i, raw)
	})
	if !ok && d.lookups.Known != nil {
		typeName, key := e.Group(i)
		k, known := d.lookups.Known.LastGroupProperties(projectID, typeName, key)
		age, ok = d.useKnown(lookupGroup, k, known, func(raw []byte) error { return e.FillGroup(i, raw) })
	}
	e.EndGroupLookup(i, ok)
	return age
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

// lookup runs get with the lookup timeout and reports whether it succeeded. While
// the breaker is open it fails at once.
func (d *Decider) lookup(ctx context.Context, kind int, get func(ctx context.Context) error) bool {
	start := time.Now()
	if !d.breaker.allow(start) {
		d.metrics.recordLookup(kind, "paused", 0)
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, d.cfg.LookupTimeout)
	defer cancel()
	err := get(bounded)
	end := time.Now()
	took := end.Sub(start)
	switch {
	case err == nil:
		d.breaker.recordSuccess(end)
		d.metrics.recordLookup(kind, "ok", took)
		return true
	case ctx.Err() != nil: // the request ended
		d.breaker.recordCanceled()
		d.metrics.recordLookup(kind, "canceled", took)
		return false
	}
	d.breaker.recordFailure(end, d.cfg.LookupPause)
	d.metrics.recordLookup(kind, "failed", took)
	d.log.Warn("lookup failed", zap.String("data", lookupNames[kind]), zap.Duration("took", took), zap.Error(err))
	return false
}

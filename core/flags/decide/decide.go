// Package decide answers the public flag endpoints: /decide, /flags and the
// remote config of browsers.
//
// Snapshots holds the compiled flags of every project in memory, so that a
// decide request reads no definitions from a store. A request is parsed in
// place and evaluated (flags/eval). Stored properties, static cohorts, kept
// identifiers and results of plugins are looked up only if a condition needs
// them, each at most once a request and within a timeout. If many lookups fail,
// requests skip the database for a short time. A failed or skipped lookup of a
// person or a group uses the properties that were read last, and the answer has
// their age in a header. Flags whose data is not known are left out of the answer,
// which says so, and all other flags are answered.
//
// A database outage therefore costs only the news of changes and the flags that
// need stored data. The package does not check rules and writes nothing, except
// that experience continuity keeps the id from before login.
package decide

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/usecount"
)

// People reads the stored properties of persons and groups.
type People interface {
	// Properties returns the stored properties of a person as a JSON object,
	// and whether the person exists. The text must not change afterwards.
	Properties(ctx context.Context, projectID int64, distinctID string) ([]byte, bool, error)
	// GroupProperties does the same for a group.
	GroupProperties(ctx context.Context, projectID int64, groupType, groupKey string) ([]byte, bool, error)
}

// Memberships reads the members of static cohorts.
type Memberships interface {
	// StaticCohorts returns the ids of the static cohorts that list the
	// person with the distinct id.
	StaticCohorts(ctx context.Context, projectID int64, distinctID string) ([]int64, error)
}

// HashKeys keeps the identifier that a person is bucketed by, for flags that
// must not change at login.
type HashKeys interface {
	// HashKeys returns the identifiers kept for the persons with distinctID
	// and anonymousID, by flag key; distinctID precedes anonymousID. If
	// anonymousID is not empty, it is first kept for the keys that have no
	// identifier yet; a failure to keep it is no error.
	HashKeys(ctx context.Context, projectID int64, distinctID, anonymousID string, flagKeys []string) (map[string]string, error)
}

// Lookups are the stores of a Decider. All are optional: the data of a nil one
// does not exist.
type Lookups struct {
	People      People
	Known       KnownPeople
	Memberships Memberships
	HashKeys    HashKeys
	Matchers    Matchers
	Locator     Locator
	Visitors    Visitors
}

// Decider decides flags for clients, from the snapshots in memory and, if a
// flag needs it, from stored data about a person or a group. It is safe for
// concurrent use.
type Decider struct {
	cfg       Config
	snapshots *Snapshots
	lookups   Lookups
	now       func() time.Time
	log       *zap.Logger
	metrics   *metrics
	breaker   breaker
}

// NewDecider returns a decider over snapshots. Nil log and reg disable logging
// and metrics.
func NewDecider(cfg Config, snapshots *Snapshots, lookups Lookups, log *zap.Logger, reg prometheus.Registerer) (*Decider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	d := &Decider{cfg: cfg, snapshots: snapshots, lookups: lookups, now: time.Now, log: log.Named("flags")}
	d.metrics = newMetrics(reg, &snapshots.broken, &d.breaker)
	if d.metrics != nil {
		var err error
		if d.metrics.byFlag, err = usecount.New(cfg.EvaluationSeries, reg); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Decide decides the flags of a project. A flag that cannot be computed has
// Failed set; Decide returns no other error.
func (d *Decider) Decide(ctx context.Context, projectID int64, q *eval.Request) []eval.Decision {
	e := eval.NewEvaluation(d.snapshots.Set(projectID), q.DistinctID, d.now())
	defer e.Release()
	e.SetRequest(q)
	e.Select(q.FlagKeys, false)
	e.Limit(q.Scope)
	d.run(ctx, projectID, e)
	return e.Decisions()
}

// Explain is Decide with an explanation of each step, and the age of the oldest
// known properties that were used because a lookup failed, 0 if all were read.
// Without FlagKeys it includes the inactive flags. It stores nothing about the
// person.
func (d *Decider) Explain(ctx context.Context, projectID int64, q *eval.Request) ([]*eval.Explanation, time.Duration) {
	e := eval.NewEvaluation(d.snapshots.Set(projectID), q.DistinctID, d.now())
	defer e.Release()
	e.Trace()
	e.SetRequest(q)
	e.Select(q.FlagKeys, true)
	e.Limit(q.Scope)
	age := d.run(ctx, projectID, e)
	return e.Explanations(), age
}

// run evaluates until no flag is pending. Between rounds it looks up the data
// that flags need, each kind at most once. It returns the age of the oldest known
// properties that it used because a lookup failed, 0 if all were read.
func (d *Decider) run(ctx context.Context, projectID int64, e *eval.Evaluation) (age time.Duration) {
	d.endMissingLookups(e)
	if d.lookups.HashKeys != nil && e.AnonymousIDToKeep() != "" {
		d.lookupHashKeys(ctx, projectID, e) // keeps the id, whether this request needs it or not
	}
	var pluginDeadline time.Time
	for !e.Run() {
		if !d.lookupNeeded(ctx, projectID, e, &pluginDeadline, &age) {
			break
		}
	}
	d.metrics.recordEvaluation(projectID, e)
	return age
}

// endMissingLookups ends the lookups that have no store: their data does not
// exist.
func (d *Decider) endMissingLookups(e *eval.Evaluation) {
	if d.lookups.People == nil {
		e.EndPersonLookup(true)
		for i := range e.Groups() {
			e.EndGroupLookup(i, true)
		}
	}
	if d.lookups.Memberships == nil {
		e.EndStaticCohortLookup(nil, true)
	}
	if d.lookups.HashKeys == nil {
		e.EndHashKeyLookup(nil, true)
	}
	if d.lookups.Matchers != nil {
		e.UsePlugins(d.lookups.Matchers)
	}
}

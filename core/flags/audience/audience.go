// Package audience counts the stored persons or groups for whom filters hold.
//
// It compiles one flag with the filters, together with the flags and cohorts that
// they refer to (flags/eval), and evaluates that flag for every stored person or
// group, page by page: cohorts, dependencies and operators of plugins count
// exactly as they do for clients. Distinct ids, static cohorts and hash keys are
// read only if the compiled filters need them. A count has a time budget; past it the counted share is
// projected to all and the result is marked as an estimate.
package audience

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
)

// Audience is the number of stored persons or groups for whom filters hold.
type Audience struct {
	Affected int64
	Total    int64
	// Estimated is true if the filters depend on a flag that buckets by device, which
	// is not stored, and if the budget ended before all were counted: Affected
	// is then projected from the counted ones.
	Estimated bool
	// Unknown is the number of those whose result could not be computed.
	Unknown int64
}

// Persons reads the stored persons of a project. Pages are in no particular
// order and are valid only during the call of fn. Walk stops at an error of fn
// and returns it.
type Persons interface {
	Walk(ctx context.Context, projectID int64, fn func(page []persons.Person) error) error
	// WalkProperties is Walk without the distinct ids, which cost most of its time.
	WalkProperties(ctx context.Context, projectID int64, fn func(page []persons.Person) error) error
	// WalkAfter is Walk for the persons after a position, in the order of positions.
	WalkAfter(ctx context.Context, projectID int64, after persons.Position, fn func(page []persons.Person) error) error
	Count(ctx context.Context, projectID int64) (int, error)
}

// Groups is Persons for the groups of one type.
type Groups interface {
	Walk(ctx context.Context, projectID int64, index int, fn func(page []persons.Group) error) error
	Count(ctx context.Context, projectID int64, index int) (int, error)
}

// Source reads the definitions of a project.
type Source interface {
	Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error)
}

// StaticCohorts reads the members of static cohorts.
type StaticCohorts interface {
	// StaticCohortsOf returns the static cohorts that list each distinct id.
	StaticCohortsOf(ctx context.Context, projectID int64, distinctIDs []string) (map[string][]int64, error)
}

// HashKeys reads the hash keys of experience continuity.
type HashKeys interface {
	// HashKeysOf returns the hash keys of each person by flag key.
	HashKeysOf(ctx context.Context, projectID int64, personIDs []int64) (map[int64]map[string]string, error)
}

// Dependencies are what a Counter reads from. Nil Operators and Plugins disable
// plugin operators, nil Now uses the clock.
type Dependencies struct {
	Persons       Persons
	Groups        Groups
	Source        Source
	StaticCohorts StaticCohorts
	HashKeys      HashKeys
	Operators     match.Registry
	Plugins       func() eval.PluginRound // a new round, for one page
	Now           func() time.Time
	Limits        match.Limits // of regular expressions
	Budget        int64        // work on texts of one person or group; see eval.CompileOptions
}

// Counter counts audiences. It is safe for concurrent use.
type Counter struct {
	deps   Dependencies
	budget time.Duration
}

// New returns a counter. budget is the time that one count may take, without waits
// for a place of package scan.
func New(budget time.Duration, deps Dependencies) *Counter {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	return &Counter{deps: deps, budget: budget}
}

// Condition returns filters of one condition set with the properties, for
// persons or for groups of a type.
func Condition(properties json.RawMessage, groupIndex *int) json.RawMessage {
	d, set := document.NewObject(), document.NewObject()
	set.Set("properties", properties)
	d.Set("groups", document.JoinList([]json.RawMessage{set.Raw()}))
	if groupIndex != nil {
		d.Set("aggregation_group_type_index", document.Encode(*groupIndex))
	}
	return d.Raw()
}

// CountCohort counts the persons in a cohort.
func (c *Counter) CountCohort(ctx context.Context, projectID, cohortID int64) (int64, error) {
	a, err := c.Count(ctx, projectID, inCohort(cohortID), nil)
	return a.Affected, err
}

// CountAll returns the audience of filters that hold for all.
func (c *Counter) CountAll(ctx context.Context, projectID int64, groupIndex *int) (Audience, error) {
	n, err := c.total(ctx, projectID, groupIndex)
	return Audience{Affected: n, Total: n}, err
}

// Count counts the stored persons, or groups of a type, for whom the filters hold.
// The filters must pass the write rules; see Condition.
func (c *Counter) Count(ctx context.Context, projectID int64, filters json.RawMessage, groupIndex *int) (Audience, error) {
	ctx, waits := scan.WithWaits(ctx)
	n, err := c.newCount(ctx, projectID, filters, groupIndex)
	if err != nil {
		return Audience{}, err
	}
	n.waits = waits
	if groupIndex != nil {
		err = c.deps.Groups.Walk(ctx, projectID, *groupIndex, func(page []persons.Group) error { return n.countGroups(ctx, page) })
	} else {
		walk := c.deps.Persons.WalkProperties
		if n.idsNeeded {
			walk = c.deps.Persons.Walk
		}
		err = walk(ctx, projectID, func(page []persons.Person) error { return n.countPersons(ctx, page) })
	}
	switch {
	case err == nil:
		return Audience{Affected: n.affected, Total: n.counted, Unknown: n.unknown, Estimated: n.byDevice}, nil
	case !errors.Is(err, errBudgetSpent):
		return Audience{}, err
	}
	total, err := c.total(ctx, projectID, groupIndex)
	if err != nil {
		return Audience{}, err
	}
	total = max(total, n.counted)
	share := float64(n.affected) / float64(max(n.counted, 1))
	return Audience{Affected: int64(math.Round(share * float64(total))), Total: total, Estimated: true, Unknown: n.unknown}, nil
}

func (c *Counter) total(ctx context.Context, projectID int64, groupIndex *int) (int64, error) {
	if groupIndex != nil {
		n, err := c.deps.Groups.Count(ctx, projectID, *groupIndex)
		return int64(n), err
	}
	n, err := c.deps.Persons.Count(ctx, projectID)
	return int64(n), err
}

// newCount compiles the filters together with the definitions of the project.
func (c *Counter) newCount(ctx context.Context, projectID int64, filters json.RawMessage, groupIndex *int) (*count, error) {
	d, err := c.deps.Source.Definitions(ctx, projectID)
	if err != nil {
		return nil, err
	}
	flag := eval.Definition{ID: math.MaxInt64, ProjectID: projectID, Key: flagKey, Filters: filters, Active: true}
	n := &count{deps: &c.deps, projectID: projectID, now: c.deps.Now(), deadline: time.Now().Add(c.budget)}
	needed := scopeOf(filters, d)
	n.listsNeeded, n.hashKeysNeeded = needed.staticCohorts, needed.hashKeys
	if groupIndex != nil {
		for name, index := range d.GroupTypes {
			if index == *groupIndex {
				n.groupType = name
			}
		}
	}
	n.set = eval.Compile(append(needed.flags, flag), needed.cohorts, d.GroupTypes, eval.CompileOptions{
		Operators: c.deps.Operators, Limits: c.deps.Limits, Budget: c.deps.Budget,
	})
	n.dependsOnID = n.set.ReadsPersonProperty("distinct_id")
	n.idsNeeded = needed.staticCohorts || len(needed.flags) > 0 || n.dependsOnID
	for i := range needed.flags {
		n.byDevice = n.byDevice || needed.flags[i].ByDevice
	}
	return n, nil
}

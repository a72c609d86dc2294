package flags

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/rules"
)

// Population is everybody a project has stored.
type Population interface {
	// Persons calls fn for every person, in pages that must not be kept, until
	// fn returns an error, which it returns.
	Persons(ctx context.Context, projectID int64, fn func(page []Subject) error) error
	// Groups is Persons for the groups of one type.
	Groups(ctx context.Context, projectID int64, index int, fn func(page []Subject) error) error
	// Count returns how many persons there are, or how many groups of a type.
	Count(ctx context.Context, projectID int64, index *int) (int64, error)
}

// Subject is a stored person or group.
type Subject struct {
	ID          int64    // of a person
	DistinctIDs []string // of a person
	Key         string   // of a group
	Properties  []byte   // a JSON object
}

// Audience is how many of the stored persons or groups a condition set is for.
type Audience struct {
	Affected int64
	Total    int64
	// Estimated is true when there was no time to look at everybody: Affected
	// is then projected from those that were seen.
	Estimated bool
	// Unknown counts those for whom nobody could tell.
	Unknown int64
}

// BlastRadius counts for how many stored persons, or groups of a type, a
// condition set's properties hold, with the evaluator that decides flags:
// cohorts and dependencies count. It takes about the configured time at most.
// It fails with Invalid for properties that break the write rules.
func (s *Service) BlastRadius(ctx context.Context, project auth.Project, properties json.RawMessage, groupIndex *int) (Audience, error) {
	refs, err := s.references(ctx, &Flag{ProjectID: project.ID}, wrapCondition(properties, groupIndex))
	if err != nil {
		return Audience{}, err
	}
	checked, err := rules.CheckFilters(wrapCondition(properties, groupIndex), refs, s.cfg.Limits())
	if f := fault.From(err); f != nil {
		return Audience{}, f.At("")
	}
	if err != nil {
		return Audience{}, err
	}
	return s.audienceOf(ctx, project, checked, len(properties) <= len("[]"), groupIndex)
}

// audience is BlastRadius for properties that are known to be right.
func (s *Service) audience(ctx context.Context, project auth.Project, properties json.RawMessage, groupIndex *int) (Audience, error) {
	return s.audienceOf(ctx, project, wrapCondition(properties, groupIndex), false, groupIndex)
}

// wrapCondition makes filters of one condition set for everybody with the
// properties.
func wrapCondition(properties json.RawMessage, groupIndex *int) json.RawMessage {
	d := document.NewObject()
	set := document.NewObject()
	set.Set("properties", properties)
	d.Set("groups", document.JoinList([]json.RawMessage{set.Raw()}))
	if groupIndex != nil {
		d.Set("aggregation_group_type_index", document.Encode(*groupIndex))
	}
	return d.Raw()
}

var errNoTime = errors.New("the time to count is over")

func (s *Service) audienceOf(ctx context.Context, project auth.Project, filters json.RawMessage, everybody bool, groupIndex *int) (Audience, error) {
	if s.deps.Population == nil {
		return Audience{}, fault.New(fault.Unavailable, "", "Stored people cannot be counted here.")
	}
	if everybody {
		n, err := s.deps.Population.Count(ctx, project.ID, groupIndex)
		return Audience{Affected: n, Total: n}, err
	}
	c, err := s.newCensus(ctx, project, filters, groupIndex)
	if err != nil {
		return Audience{}, err
	}
	if groupIndex != nil {
		err = s.deps.Population.Groups(ctx, project.ID, *groupIndex, func(page []Subject) error { return c.groups(ctx, page) })
	} else {
		err = s.deps.Population.Persons(ctx, project.ID, func(page []Subject) error { return c.persons(ctx, page) })
	}
	switch {
	case err == nil:
		return Audience{Affected: c.affected, Total: c.seen, Unknown: c.unknown}, nil
	case !errors.Is(err, errNoTime):
		return Audience{}, err
	}
	total, err := s.deps.Population.Count(ctx, project.ID, groupIndex)
	if err != nil {
		return Audience{}, err
	}
	share := float64(c.affected) / float64(max(c.seen, 1))
	return Audience{Affected: int64(math.Round(share * float64(max(total, c.seen)))), Total: max(total, c.seen), Estimated: true, Unknown: c.unknown}, nil
}

// census asks one flag about everybody.
type census struct {
	store     *Store
	projectID int64
	set       *eval.Set
	key       string
	groupType string
	lists     bool // there are static cohorts
	hashKeys  bool // there are flags with experience continuity
	now       time.Time
	until     time.Time
	plugins   func() eval.PluginRound

	seen, affected, unknown int64
}

// surveyed is somebody a census asks about.
type surveyed struct {
	question eval.Request
	known    eval.KnownProperties
}

// censusKey is the key of the flag a census asks, which no stored flag has.
const censusKey = ":census"

func (s *Service) newCensus(ctx context.Context, project auth.Project, filters json.RawMessage, groupIndex *int) (*census, error) {
	stored, err := s.deps.Source.Definitions(ctx, project.ID)
	if err != nil {
		return nil, err
	}
	probe := eval.Definition{ID: math.MaxInt64, ProjectID: project.ID, Key: censusKey, Filters: filters, Active: true}
	c := &census{store: s.store, projectID: project.ID, key: censusKey, now: s.now(), until: time.Now().Add(s.cfg.CountBudget), plugins: s.deps.Plugins}
	for _, f := range stored.Flags {
		c.hashKeys = c.hashKeys || f.Active && f.ExperienceContinuity
	}
	c.lists = slices.ContainsFunc(stored.Cohorts, func(d eval.CohortDefinition) bool { return d.Static })
	c.hashKeys = c.hashKeys && len(document.FlagDependencies(filters)) > 0
	if groupIndex != nil {
		for name, index := range stored.GroupTypes {
			if index == *groupIndex {
				c.groupType = name
			}
		}
	}
	c.set = eval.Compile(append(stored.Flags, probe), stored.Cohorts, stored.GroupTypes, eval.CompileOptions{Location: stored.Location, Operators: s.deps.Operators})
	return c, nil
}

func (c *census) persons(ctx context.Context, page []Subject) error {
	var lists map[string][]int64
	var hashKeys map[int64]map[string]string
	var err error
	if c.lists {
		if lists, err = c.store.listsOf(ctx, c.projectID, page); err != nil {
			return err
		}
	}
	if c.hashKeys {
		if hashKeys, err = c.store.hashKeysOf(ctx, c.projectID, page); err != nil {
			return err
		}
	}
	all := make([]surveyed, 0, len(page))
	for i := range page {
		p := &page[i]
		q := eval.Request{FlagKeys: []string{c.key}}
		known := eval.KnownProperties{PersonProperties: p.Properties, HashKeys: hashKeys[p.ID]}
		if len(p.DistinctIDs) > 0 {
			q.DistinctID = p.DistinctIDs[0]
		}
		for _, id := range p.DistinctIDs {
			known.StaticCohorts = append(known.StaticCohorts, lists[id]...)
		}
		all = append(all, surveyed{q, known})
	}
	c.survey(ctx, all)
	return c.more()
}

func (c *census) groups(ctx context.Context, page []Subject) error {
	all := make([]surveyed, 0, len(page))
	for i := range page {
		g := &page[i]
		all = append(all, surveyed{
			eval.Request{FlagKeys: []string{c.key}, Groups: map[string]string{c.groupType: g.Key}},
			eval.KnownProperties{GroupProperties: map[string]json.RawMessage{c.groupType: g.Properties}},
		})
	}
	c.survey(ctx, all)
	return c.more()
}

// survey counts some people or groups; plugins are asked once about all of them.
func (c *census) survey(ctx context.Context, all []surveyed) {
	var plugins eval.PluginRound
	if c.plugins != nil {
		plugins = c.plugins()
		for i := range all {
			all[i].known.Plugins = plugins
		}
	}
	affected, unknown := c.count(all)
	if plugins != nil && plugins.Ask(ctx) {
		affected, unknown = c.count(all)
	}
	c.seen, c.affected, c.unknown = c.seen+int64(len(all)), c.affected+affected, c.unknown+unknown
}

func (c *census) count(all []surveyed) (affected, unknown int64) {
	for i := range all {
		for _, d := range c.set.Evaluate(&all[i].question, &all[i].known, c.now) {
			switch {
			case d.Failed != eval.CauseNone:
				unknown++
			case d.On:
				affected++
			}
		}
	}
	return affected, unknown
}

func (c *census) more() error {
	if time.Now().After(c.until) {
		return errNoTime
	}
	return nil
}

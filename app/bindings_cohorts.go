package app

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
)

// cohortsFor is how long the definitions of a project's cohorts are used
// before somebody looks whether they have changed.
const cohortsFor = 500 * time.Millisecond

// members tells who is in a cohort. Cohorts are kept and understood by flags:
// each is asked about as a flag whose only condition is the cohort.
type members struct {
	source    decide.Source
	lists     staticCohorts
	people    storedPeople
	operators match.Registry
	ask       func() actionmatch.Plugins
	now       func() time.Time

	mu   sync.Mutex
	sets map[int64]cohortSet // by project
}

type staticCohorts interface {
	StaticCohorts(ctx context.Context, projectID int64, distinctID string) ([]int64, error)
}

type storedPeople interface {
	Properties(ctx context.Context, projectID int64, distinctID string) ([]byte, bool, error)
}

// cohortSet is the cohorts of a project as flags.
type cohortSet struct {
	flags *eval.Set
	has   map[int64]bool
	lists bool // there are static ones
	stamp int64
	until time.Time
}

func newMembers(s decide.Source, lists staticCohorts, people storedPeople, o match.Registry, ask func() actionmatch.Plugins) *members {
	return &members{source: s, lists: lists, people: people, operators: o, ask: ask, now: time.Now, sets: map[int64]cohortSet{}}
}

// InCohort implements actions.Members. Nobody can tell of a cohort that is
// not there.
func (m *members) InCohort(ctx context.Context, projectID, cohortID int64, distinctID string) (match.Result, error) {
	set, err := m.set(ctx, projectID)
	if err != nil || !set.has[cohortID] {
		return match.Unknown, err
	}
	known := &eval.KnownProperties{}
	if known.PersonProperties, _, err = m.people.Properties(ctx, projectID, distinctID); err != nil {
		return match.Unknown, err
	}
	if set.lists {
		if known.StaticCohorts, err = m.lists.StaticCohorts(ctx, projectID, distinctID); err != nil {
			return match.Unknown, err
		}
	}
	q := &eval.Request{DistinctID: distinctID, FlagKeys: []string{cohortKey(cohortID)}}
	plugins := m.ask()
	known.Plugins = plugins
	for again := true; again; again = plugins.Ask(ctx) {
		for _, d := range set.flags.Evaluate(q, known, m.now()) {
			if d.Failed == eval.CauseNone {
				return match.Of(d.On), nil
			}
		}
	}
	return match.Unknown, nil
}

// set returns the cohorts of a project as they are now, or were a moment ago.
func (m *members) set(ctx context.Context, projectID int64) (cohortSet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, ok := m.sets[projectID]
	if ok && m.now().Before(set.until) {
		return set, nil
	}
	if ok {
		stamps, err := m.source.Revisions(ctx)
		if err != nil {
			return cohortSet{}, fmt.Errorf("see whether cohorts have changed: %w", err)
		}
		ok = stamps[projectID] == set.stamp
	}
	if !ok {
		stored, err := m.source.Definitions(ctx, projectID)
		if err != nil {
			return cohortSet{}, fmt.Errorf("read the cohorts of project %d: %w", projectID, err)
		}
		set = m.compile(projectID, &stored)
	}
	set.until = m.now().Add(cohortsFor)
	m.sets[projectID] = set
	return set, nil
}

func (m *members) compile(projectID int64, stored *eval.ProjectDefinitions) cohortSet {
	set := cohortSet{has: map[int64]bool{}, stamp: stored.Revision}
	var probes []eval.Definition
	for i := range stored.Cohorts {
		c := &stored.Cohorts[i]
		if c.Deleted {
			continue
		}
		set.has[c.ID], set.lists = true, set.lists || c.Static
		probes = append(probes, eval.Definition{
			ID: c.ID, ProjectID: projectID, Key: cohortKey(c.ID), Active: true,
			Filters: fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"id","type":"cohort","value":%d}],"rollout_percentage":100}]}`, c.ID),
		})
	}
	set.flags = eval.Compile(probes, stored.Cohorts, stored.GroupTypes, eval.CompileOptions{Location: stored.Location, Operators: m.operators})
	return set
}

func cohortKey(id int64) string { return strconv.FormatInt(id, 10) }

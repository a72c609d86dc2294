package cohorts

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/snapshot"
)

// Source reads the definitions of projects.
type Source interface {
	Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error)
	// Revisions returns a number per project that changes with its definitions.
	Revisions(ctx context.Context) (map[int64]int64, error)
}

// Properties reads the stored properties of a person as a JSON object, and
// whether the person exists.
type Properties interface {
	Properties(ctx context.Context, projectID int64, distinctID string) ([]byte, bool, error)
}

// StaticCohorts reads the static cohorts that list the person with a distinct id.
type StaticCohorts interface {
	StaticCohorts(ctx context.Context, projectID int64, distinctID string) ([]int64, error)
}

// MembersDependencies are what Members reads from. Operators, Plugins, Log and Wake
// may be nil.
type MembersDependencies struct {
	Source    Source
	Lists     StaticCohorts
	People    Properties
	Operators match.Registry
	Plugins   func() eval.PluginRound // a new round, for one answer
	Limits    match.Limits            // of regular expressions
	Budget    int64                   // work on texts of one answer; see eval.CompileOptions
	Log       *zap.Logger
	Wake      <-chan struct{} // receives when cohorts may have changed
}

// Members answers whether a person is in a cohort. The cohorts of a project are
// read on first use, and then followed by polling. It is safe
// for concurrent use; no lock is held during I/O, and projects do not wait for
// each other.
type Members struct {
	deps MembersDependencies
	sets *snapshot.Map[int64, *cohortSet]
}

// cohortSet is the cohorts of a project, each compiled as a flag whose only
// condition is the cohort. It is immutable.
type cohortSet struct {
	flags     *eval.Set
	ids       map[int64]bool
	hasStatic bool
}

// NewMembers returns the answers over deps. Start follows changes of cohorts.
func NewMembers(deps MembersDependencies) *Members {
	m := &Members{deps: deps}
	opts := snapshot.Options[int64, *cohortSet]{Revisions: deps.Source.Revisions, Load: m.load, Lazy: true}
	if log := deps.Log; log != nil {
		opts.OnFailure = func(err error) { log.Warn("cohort refresh failed: answering from memory", zap.Error(err)) }
		opts.OnRecovery = func() { log.Info("cohort refresh recovered") }
	}
	m.sets = snapshot.New(opts)
	m.sets.WakeBy(deps.Wake)
	return m
}

// Start follows changes of cohorts until Stop. A failed first poll is logged: the
// cohorts of a project are read on first use.
func (m *Members) Start(ctx context.Context) error {
	_ = m.sets.Start(ctx)
	return nil
}

// Stop ends following changes.
func (m *Members) Stop(ctx context.Context) error { return m.sets.Stop(ctx) }

// InCohort reports whether the person with a distinct id is in a cohort. It
// returns Unknown for a cohort that does not exist or cannot be computed.
func (m *Members) InCohort(ctx context.Context, projectID, cohortID int64, distinctID string) (match.Result, error) {
	set, err := m.sets.GetOrLoad(ctx, projectID)
	if err != nil || !set.ids[cohortID] {
		return match.Unknown, err
	}
	known := &eval.KnownProperties{}
	if known.PersonProperties, _, err = m.deps.People.Properties(ctx, projectID, distinctID); err != nil {
		return match.Unknown, err
	}
	if set.hasStatic {
		if known.StaticCohorts, err = m.deps.Lists.StaticCohorts(ctx, projectID, distinctID); err != nil {
			return match.Unknown, err
		}
	}
	return m.evaluate(ctx, set, known, cohortID, distinctID), nil
}

// evaluate repeats the evaluation until no answers of plugins are missing.
func (m *Members) evaluate(ctx context.Context, set *cohortSet, known *eval.KnownProperties, cohortID int64, distinctID string) match.Result {
	q := &eval.Request{DistinctID: distinctID, FlagKeys: []string{cohortKey(cohortID)}}
	var plugins eval.PluginRound
	if m.deps.Plugins != nil {
		plugins = m.deps.Plugins()
		known.Plugins = plugins
	}
	for again := true; again; again = plugins != nil && plugins.Ask(ctx) {
		for _, d := range set.flags.Evaluate(q, known, time.Now()) {
			if d.Failed == eval.CauseNone {
				return match.Of(d.On)
			}
		}
	}
	return match.Unknown
}

func (m *Members) load(ctx context.Context, projectID int64, _ *cohortSet) (*cohortSet, int64, error) {
	d, err := m.deps.Source.Definitions(ctx, projectID)
	if err != nil {
		return nil, 0, fmt.Errorf("read cohorts of project %d: %w", projectID, err)
	}
	set := &cohortSet{ids: map[int64]bool{}}
	var flags []eval.Definition
	for i := range d.Cohorts {
		c := &d.Cohorts[i]
		if c.Deleted {
			continue
		}
		set.ids[c.ID], set.hasStatic = true, set.hasStatic || c.Static
		flags = append(flags, eval.Definition{
			ID: c.ID, ProjectID: projectID, Key: cohortKey(c.ID), Active: true,
			Filters: fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"id","type":"cohort","value":%d}],"rollout_percentage":100}]}`, c.ID),
		})
	}
	set.flags = eval.Compile(flags, d.Cohorts, d.GroupTypes, eval.CompileOptions{
		Operators: m.deps.Operators, Limits: m.deps.Limits, Budget: m.deps.Budget,
	})
	return set, d.Revision, nil
}

func cohortKey(id int64) string { return strconv.FormatInt(id, 10) }

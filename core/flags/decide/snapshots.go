package decide

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/snapshot"
)

// Source reads the definitions that snapshots are compiled from.
type Source interface {
	// Definitions reads the definitions of one project.
	Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error)
	// Revisions returns the revision of each project that ever had flags or
	// cohorts. The revision changes with each write to the flags, cohorts, group
	// types or time zone of the project, by any process. Revisions is polled
	// several times a second and must be one cheap query.
	Revisions(ctx context.Context) (map[int64]int64, error)
}

// Snapshots holds the compiled flags of every project in memory. A write of this
// process is visible when Refresh returns, a write of another process within the
// poll interval. While the source cannot be read, the last sets stay.
type Snapshots struct {
	sets      *snapshot.Map[int64, *eval.Set]
	source    Source
	operators match.Registry
	limits    match.Limits
	budget    int64
	log       *zap.Logger
	broken    brokenDefinitions
}

// NewSnapshots returns empty snapshots over source. Nil operators and log
// disable plugin operators and logging.
func NewSnapshots(cfg Config, source Source, operators match.Registry, log *zap.Logger) (*Snapshots, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	s := &Snapshots{source: source, operators: operators, limits: cfg.Patterns, budget: cfg.EvaluationBudget, log: log.Named("flags")}
	s.sets = snapshot.New(snapshot.Options[int64, *eval.Set]{
		Revisions: source.Revisions, Load: s.compile, Interval: cfg.PollInterval,
		OnFailure:  func(err error) { s.log.Warn("flag refresh failed: deciding from memory", zap.Error(err)) },
		OnRecovery: func() { s.log.Info("flag refresh recovered") },
	})
	return s, nil
}

// WakeBy makes the snapshots poll also when wake receives. It must be called before
// Start.
func (s *Snapshots) WakeBy(wake <-chan struct{}) { s.sets.WakeBy(wake) }

var emptySet = eval.Compile(nil, nil, nil, eval.CompileOptions{})

// Set returns the compiled flags of a project; never nil. It takes no lock. It
// returns the same set until the definitions of the project change.
func (s *Snapshots) Set(projectID int64) *eval.Set {
	if set, ok := s.sets.Get(projectID); ok {
		return set
	}
	return emptySet
}

// Start loads every project and follows changes until Stop. It fails if the
// source cannot be read, unless the source is a LastKnown and the database is
// Unavailable: then the kept definitions decide until it can be read.
func (s *Snapshots) Start(ctx context.Context) error {
	err := s.sets.Start(ctx)
	if err == nil || fault.Is(err, fault.Unavailable) && s.startFromKept(ctx) {
		return nil
	}
	_ = s.sets.Stop(ctx)
	return fmt.Errorf("load flags: %w", err)
}

// Stop ends following changes. The snapshots stay.
func (s *Snapshots) Stop(ctx context.Context) error { return s.sets.Stop(ctx) }

// Poll loads the projects that changed since they were loaded. A project that
// cannot be loaded keeps its set and does not affect the others.
func (s *Snapshots) Poll(ctx context.Context) error { return s.sets.Poll(ctx) }

// Refresh loads one project. After it returns nil, every request that starts
// later sees at least what was committed before the call.
func (s *Snapshots) Refresh(ctx context.Context, projectID int64) error {
	return s.sets.Refresh(ctx, projectID)
}

// RefreshAll loads all projects again, after the operators of plugins changed.
func (s *Snapshots) RefreshAll(ctx context.Context) error { return s.sets.RefreshAll(ctx) }

// startFromKept compiles the kept definitions. It returns false for a source
// that keeps none.
func (s *Snapshots) startFromKept(ctx context.Context) bool {
	known, ok := s.source.(*LastKnown)
	if !ok {
		return false
	}
	all, _ := known.All()
	for id := range all {
		if err := s.sets.Refresh(ctx, id); err != nil {
			s.log.Warn("saved snapshot compile failed", zap.Int64("project_id", id), zap.Error(err))
		}
	}
	return true
}

func (s *Snapshots) kept(projectID int64) (eval.ProjectDefinitions, bool) {
	if known, ok := s.source.(*LastKnown); ok {
		return known.Kept(projectID)
	}
	return eval.ProjectDefinitions{}, false
}

// compile reads and compiles the flags of a project. When nothing is compiled
// yet, or everything is compiled again, kept definitions replace a source that
// cannot be read.
func (s *Snapshots) compile(ctx context.Context, projectID int64, old *eval.Set) (*eval.Set, int64, error) {
	d, err := s.source.Definitions(ctx, projectID)
	if kept, ok := s.kept(projectID); err != nil && old == nil && ok {
		d, err = kept, nil
		d.Revision = -1 // differs from every stored revision: loaded again
	}
	if err != nil {
		return nil, 0, fmt.Errorf("flags of project %d: %w", projectID, err)
	}
	set := eval.Update(old, d.Flags, d.Cohorts, d.GroupTypes, eval.CompileOptions{
		Operators: s.operators, Limits: s.limits, Budget: s.budget,
	})
	flags, cohorts := set.Broken(), set.BrokenCohorts()
	for key, err := range flags {
		s.log.Warn("flag cannot be evaluated", zap.Int64("project_id", projectID), zap.String("flag", key), zap.Error(err))
	}
	for id, err := range cohorts {
		s.log.Warn("cohort cannot be evaluated", zap.Int64("project_id", projectID), zap.Int64("cohort", id), zap.Error(err))
	}
	s.broken.set(projectID, len(flags), len(cohorts))
	return set, d.Revision, nil
}

package flags

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
)

// Source is where snapshots come from: the store of flags and cohorts.
type Source interface {
	// Definitions reads everything of one project.
	Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error)
	// Stamps returns one number per project that has ever had flags or
	// cohorts. A project's number is another one after each write to its
	// flags, cohorts, group types or time zone, by whichever process. It is
	// asked every few hundred milliseconds and must be one cheap query.
	Stamps(ctx context.Context) (map[int64]int64, error)
}

// Snapshots holds the compiled flags of every project in memory and keeps
// them current: at once after a write of this process (Refresh), within the
// poll interval after a write of another one. While the source cannot be read
// the last known good ones stay.
type Snapshots struct {
	source    Source
	operators match.Registry
	every     time.Duration
	log       *zap.Logger

	projects atomic.Pointer[map[int64]*snapshot]
	mu       sync.Mutex // for changing projects
	stop     context.CancelFunc
	done     chan struct{}
	stale    bool // the last poll failed; for the log
}

// snapshot is one project.
type snapshot struct {
	set   atomic.Pointer[eval.Set]
	mu    sync.Mutex // one load at a time, so that the newer one stays
	stamp int64
}

// NewSnapshots returns empty snapshots over source. operators may be nil.
func NewSnapshots(cfg DecideConfig, source Source, operators match.Registry, log *zap.Logger) (*Snapshots, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	s := &Snapshots{source: source, operators: operators, every: cfg.PollInterval, log: log.Named("flags")}
	s.projects.Store(&map[int64]*snapshot{})
	return s, nil
}

var emptySet = eval.Compile(nil, nil, nil, eval.CompileOptions{})

// Set returns the compiled flags of a project; never nil. It takes no lock.
func (s *Snapshots) Set(projectID int64) *eval.Set {
	if p := (*s.projects.Load())[projectID]; p != nil {
		if set := p.set.Load(); set != nil {
			return set
		}
	}
	return emptySet
}

// Start loads every project and keeps following changes until Stop. It fails
// when the source cannot be read.
func (s *Snapshots) Start(ctx context.Context) error {
	if err := s.Poll(ctx); err != nil {
		return fmt.Errorf("load flags: %w", err)
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.done = make(chan struct{})
	go s.follow(ctx)
	return nil
}

// Stop ends following changes. The snapshots stay.
func (s *Snapshots) Stop(ctx context.Context) error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Snapshots) follow(ctx context.Context) {
	defer close(s.done)
	t := time.NewTicker(s.every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := s.Poll(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != s.stale {
			s.stale = failed
			if failed {
				s.log.Warn("flags are decided from what is in memory: changes cannot be read", zap.Error(err))
			} else {
				s.log.Info("changes of flags can be read again")
			}
		}
	}
}

// Poll loads the projects that were changed since they were loaded. One that
// cannot be loaded keeps its snapshot and does not hinder the others.
func (s *Snapshots) Poll(ctx context.Context) error {
	stamps, err := s.source.Stamps(ctx)
	if err != nil {
		return err
	}
	s.admit(slices.Collect(maps.Keys(stamps)))
	var errs []error
	for id, stamp := range stamps {
		p := (*s.projects.Load())[id]
		if p.current(stamp) {
			continue
		}
		if err := s.load(ctx, id, p, stamp); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Refresh loads one project now. When it returns without an error every
// request that starts later sees what was committed before the call.
func (s *Snapshots) Refresh(ctx context.Context, projectID int64) error {
	s.admit([]int64{projectID})
	return s.load(ctx, projectID, (*s.projects.Load())[projectID], 0)
}

// RefreshAll loads all projects again, for when plugins have brought or taken
// operators.
func (s *Snapshots) RefreshAll(ctx context.Context) error {
	var errs []error
	for id, p := range *s.projects.Load() {
		errs = append(errs, s.load(ctx, id, p, 0))
	}
	return errors.Join(errs...)
}

func (p *snapshot) current(stamp int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set.Load() != nil && p.stamp == stamp
}

// load compiles a project. stamp is what was known before reading; 0 takes
// the one that comes with what is read.
func (s *Snapshots) load(ctx context.Context, id int64, p *snapshot, stamp int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	stored, err := s.source.Definitions(ctx, id)
	if err != nil {
		return fmt.Errorf("load flags of project %d: %w", id, err)
	}
	set := eval.Compile(stored.Flags, stored.Cohorts, stored.GroupTypes, eval.CompileOptions{Location: stored.Location, Operators: s.operators})
	for key, err := range set.Broken() {
		s.log.Warn("a flag cannot be computed", zap.Int64("project_id", id), zap.String("flag", key), zap.Error(err))
	}
	if stored.Revision != 0 {
		stamp = stored.Revision
	}
	p.stamp = stamp
	p.set.Store(set)
	return nil
}

// admit makes room for projects that are new.
func (s *Snapshots) admit(ids []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := *s.projects.Load()
	known := func(id int64) bool { return old[id] != nil }
	if ids = slices.DeleteFunc(ids, known); len(ids) == 0 {
		return
	}
	next := maps.Clone(old)
	for _, id := range ids {
		next[id] = &snapshot{}
	}
	s.projects.Store(&next)
}

package actions

import (
	"context"
	"time"

	"go.uber.org/zap"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/snapshot"
)

// Snapshots holds the compiled actions of every project in memory. A write of
// this process is visible when Refresh returns, a write of another process within
// a second. While the store cannot be read, the last loaded actions stay. An
// invalid action does not affect the others.
type Snapshots struct {
	store     *Store
	projects  Projects
	operators match.Registry
	log       *zap.Logger
	loaded    *snapshot.Map[int64, *ProjectActions]
}

// Projects reads projects.
type Projects interface {
	// Project returns a project, or NotFound.
	Project(ctx context.Context, id int64) (auth.Project, error)
}

// location returns the time zone of a project, UTC if it cannot be read.
func location(ctx context.Context, projects Projects, projectID int64) *time.Location {
	p, err := projects.Project(ctx, projectID)
	if err != nil {
		return time.UTC
	}
	return p.Location()
}

// ProjectActions are the actions of one project at one moment. It is immutable
// and safe for concurrent use.
type ProjectActions struct {
	// All finds the actions that an event fits, Posting those of them that post to
	// chat.
	All, Posting *actionmatch.Index
	// ByID are the actions that are not deleted.
	ByID map[int64]*Action

	zone     string
	matchers map[int64]*actionmatch.Matcher
	patterns int64 // size of the regular expressions
}

// NewSnapshots returns empty Snapshots over store. operators may be nil.
func NewSnapshots(store *Store, projects Projects, operators match.Registry, log *zap.Logger) *Snapshots {
	s := &Snapshots{store: store, projects: projects, operators: operators, log: log.Named("actions")}
	s.loaded = snapshot.New(snapshot.Options[int64, *ProjectActions]{
		Revisions: store.Revisions,
		Load:      s.load,
		OnFailure: func(err error) {
			s.log.Warn("action refresh failed, matching with the last loaded actions", zap.Error(err))
		},
		OnRecovery: func() { s.log.Info("action refresh recovered") },
	})
	s.loaded.WakeBy(store.db.Wakes.Actions.Follow())
	return s
}

var noActions = &ProjectActions{All: actionmatch.NewIndex(nil), Posting: actionmatch.NewIndex(nil)}

// ForProject returns the actions of a project, never nil. It takes no lock.
func (s *Snapshots) ForProject(projectID int64) *ProjectActions {
	if p, ok := s.loaded.Get(projectID); ok {
		return p
	}
	return noActions
}

// Start loads every project and follows changes until Stop. It does not fail: an
// unreadable store is read again with the next poll.
func (s *Snapshots) Start(ctx context.Context) error {
	_ = s.loaded.Start(ctx) // logged by OnFailure
	return nil
}

// Stop ends following changes. The loaded actions stay.
func (s *Snapshots) Stop(ctx context.Context) error { return s.loaded.Stop(ctx) }

// RefreshAll compiles the actions of all projects again, after plugins added or
// removed operators.
func (s *Snapshots) RefreshAll(ctx context.Context) error { return s.loaded.RefreshAll(ctx) }

// Refresh loads one project. After it returns nil, every reader sees what was
// committed before the call.
func (s *Snapshots) Refresh(ctx context.Context, projectID int64) error {
	return s.loaded.Refresh(ctx, projectID)
}

// load reads and compiles the actions of a project. It reuses the matchers of
// old, which may be nil.
func (s *Snapshots) load(ctx context.Context, projectID int64, old *ProjectActions) (*ProjectActions, int64, error) {
	revisions, err := s.store.Revisions(ctx) // before the actions: at worst they are loaded once more
	if err != nil {
		return nil, 0, err
	}
	list, broken, err := s.store.listActive(ctx, projectID)
	if err != nil {
		return nil, 0, err
	}
	if broken != nil {
		s.log.Warn("stored action unreadable", zap.Int64("project_id", projectID), zap.Error(broken))
	}
	if old == nil {
		old = noActions
	}
	return s.compile(ctx, projectID, list, old), revisions[projectID], nil
}

// compile compiles the actions of a project. It reuses the matchers of unchanged
// actions.
func (s *Snapshots) compile(ctx context.Context, projectID int64, list []Action, old *ProjectActions) *ProjectActions {
	opts := actionmatch.CompileOptions{Location: location(ctx, s.projects, projectID), Operators: s.operators, Lenient: true}
	p := &ProjectActions{ByID: make(map[int64]*Action, len(list)), zone: opts.Location.String(), matchers: make(map[int64]*actionmatch.Matcher, len(list))}
	var all, posting []actionmatch.Entry
	limits := match.DefaultLimits()
	for i := range list {
		a := &list[i]
		p.ByID[a.ID] = a
		m := old.matchers[a.ID]
		if b := old.ByID[a.ID]; m == nil || b.Version != a.Version || old.zone != p.zone {
			m = s.matcher(projectID, a, opts)
		}
		if m == nil {
			continue
		}
		p.matchers[a.ID] = m
		if err := limits.CheckProject("action", m.Patterns(), p.patterns); err != nil {
			s.log.Warn("action is not matched", zap.Int64("project_id", projectID), zap.Int64("action", a.ID), zap.Error(err))
			delete(p.matchers, a.ID)
			continue
		}
		p.patterns += m.Patterns()
		all = append(all, actionmatch.Entry{ID: a.ID, Matcher: m})
		if a.PostToChat {
			posting = append(posting, actionmatch.Entry{ID: a.ID, Matcher: m})
		}
	}
	p.All, p.Posting = actionmatch.NewIndex(all), actionmatch.NewIndex(posting)
	return p
}

// matcher compiles an action and logs its problems.
func (s *Snapshots) matcher(projectID int64, a *Action, opts actionmatch.CompileOptions) *actionmatch.Matcher {
	m, err := actionmatch.Compile(a.Steps, opts)
	if err == nil {
		err = m.Problem()
	}
	if err != nil {
		s.log.Warn("action has invalid steps", zap.Int64("project_id", projectID), zap.Int64("action", a.ID), zap.Error(err))
	}
	return m
}

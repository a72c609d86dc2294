package actions

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/match"
)

// Memory holds the compiled actions of every project in memory and keeps them
// current: at once after a write of this process (Refresh), within a second
// after a write of another one. While the store cannot be read the last known
// good ones stay. An action that makes no sense any more hinders no other.
type Memory struct {
	store     *Store
	projects  Projects
	operators match.Registry
	log       *zap.Logger

	loaded atomic.Pointer[map[int64]*Project]
	load   sync.Mutex // one load at a time, so that the newer one stays
	stop   context.CancelFunc
	done   chan struct{}
	stale  bool // the last poll failed; for the log
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

// Project is the actions of one project as they were at one moment. It is
// immutable and safe for parallel use.
type Project struct {
	// All finds the actions an event fits, Posting those of them that post to
	// chat.
	All, Posting *actionmatch.Index
	// ByID is every action that is not deleted.
	ByID map[int64]*Action

	stamp    int64
	zone     string
	matchers map[int64]*actionmatch.Matcher
}

// NewMemory returns an empty Memory over store. operators may be nil.
func NewMemory(store *Store, projects Projects, operators match.Registry, log *zap.Logger) *Memory {
	s := &Memory{store: store, projects: projects, operators: operators, log: log.Named("actions")}
	s.loaded.Store(&map[int64]*Project{})
	return s
}

var noProject = &Project{All: actionmatch.NewIndex(nil), Posting: actionmatch.NewIndex(nil)}

// Project returns the actions of a project; never nil. It takes no lock.
func (s *Memory) Project(projectID int64) *Project {
	if p := (*s.loaded.Load())[projectID]; p != nil {
		return p
	}
	return noProject
}

// pollEvery is how often other processes' changes are looked for.
const pollEvery = 500 * time.Millisecond

// Start loads every project and keeps following changes until Stop. A store
// that cannot be read now is asked again.
func (s *Memory) Start(ctx context.Context) error {
	s.poll(ctx)
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.done = make(chan struct{})
	go s.follow(ctx)
	return nil
}

// Stop ends following changes. What is in memory stays.
func (s *Memory) Stop(ctx context.Context) error {
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

func (s *Memory) follow(ctx context.Context) {
	defer close(s.done)
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.poll(ctx)
		}
	}
}

// poll loads the projects that were changed since they were loaded.
func (s *Memory) poll(ctx context.Context) {
	stamps, err := s.store.Stamps(ctx)
	for id, stamp := range stamps {
		if p := (*s.loaded.Load())[id]; p == nil || p.stamp != stamp {
			err = errors.Join(err, s.Refresh(ctx, id))
		}
	}
	if failed := err != nil && ctx.Err() == nil; failed != s.stale {
		s.stale = failed
		if failed {
			s.log.Warn("events are matched with the actions in memory: changes cannot be read", zap.Error(err))
		} else {
			s.log.Info("changes of actions can be read again")
		}
	}
}

// RefreshAll loads all projects again, for when plugins have brought or taken
// operators.
func (s *Memory) RefreshAll(ctx context.Context) error {
	var errs []error
	for id := range *s.loaded.Load() {
		errs = append(errs, s.refresh(ctx, id, true))
	}
	return errors.Join(errs...)
}

// Refresh loads one project now. When it returns without an error, whoever asks
// later sees what was committed before the call.
func (s *Memory) Refresh(ctx context.Context, projectID int64) error {
	return s.refresh(ctx, projectID, false)
}

// refresh loads one project; anew compiles also what has not changed.
func (s *Memory) refresh(ctx context.Context, projectID int64, anew bool) error {
	s.load.Lock()
	defer s.load.Unlock()
	stamps, err := s.store.Stamps(ctx) // before the actions: at worst they are read once more
	if err != nil {
		return err
	}
	list, broken, err := s.store.live(ctx, projectID)
	if err != nil {
		return err
	}
	if broken != nil {
		s.log.Warn("an action cannot be read and matches nothing", zap.Int64("project_id", projectID), zap.Error(broken))
	}
	before := s.Project(projectID)
	if anew {
		before = noProject
	}
	p := s.compile(ctx, projectID, list, before)
	p.stamp = stamps[projectID]
	next := maps.Clone(*s.loaded.Load())
	next[projectID] = p
	s.loaded.Store(&next)
	return nil
}

// compile makes a project of its actions. Those that are as before are not
// compiled again.
func (s *Memory) compile(ctx context.Context, projectID int64, list []Action, before *Project) *Project {
	opts := actionmatch.CompileOptions{Location: location(ctx, s.projects, projectID), Operators: s.operators, Lenient: true}
	p := &Project{ByID: make(map[int64]*Action, len(list)), zone: opts.Location.String(), matchers: make(map[int64]*actionmatch.Matcher, len(list))}
	var all, posting []actionmatch.Entry
	for i := range list {
		a := &list[i]
		p.ByID[a.ID] = a
		m := before.matchers[a.ID]
		if old := before.ByID[a.ID]; m == nil || old.Version != a.Version || before.zone != p.zone {
			m = s.matcher(projectID, a, opts)
		}
		if m == nil {
			continue
		}
		p.matchers[a.ID] = m
		all = append(all, actionmatch.Entry{ID: a.ID, Matcher: m})
		if a.PostToChat {
			posting = append(posting, actionmatch.Entry{ID: a.ID, Matcher: m})
		}
	}
	p.All, p.Posting = actionmatch.NewIndex(all), actionmatch.NewIndex(posting)
	return p
}

// matcher compiles an action, and logs what is wrong with it.
func (s *Memory) matcher(projectID int64, a *Action, opts actionmatch.CompileOptions) *actionmatch.Matcher {
	m, err := actionmatch.Compile(a.Steps, opts)
	if err == nil {
		err = m.Problem()
	}
	if err != nil {
		s.log.Warn("an action has steps that match nothing", zap.Int64("project_id", projectID), zap.Int64("action", a.ID), zap.Error(err))
	}
	return m
}

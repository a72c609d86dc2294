package actions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// Service manages actions. Every change is one transaction with its entry in
// the activity log, and is visible in the snapshots of this process when the
// call returns. It is safe for concurrent use.
type Service struct {
	store    *Store
	activity *activity.Log
	deps     Dependencies
	log      *zap.Logger
	now      func() time.Time
}

// Dependencies are what the service uses.
type Dependencies struct {
	Users Users
	// The remaining fields are optional. Nil disables counts, notifications,
	// the checks of cohorts and plugin operators, time zones, snapshots and
	// logging; Now defaults to time.Now.
	Calculations Calculations
	Chat         Chat
	CohortIDs    CohortIDs
	Operators    match.Registry
	Projects     Projects
	Snapshots    Refresher
	Now          func() time.Time
	Log          *zap.Logger
}

// Users reads users.
type Users interface {
	// UsersByID returns the users that exist.
	UsersByID(ctx context.Context, ids []int64) (map[int64]auth.User, error)
}

// Calculations reports the state of history counts.
type Calculations interface {
	// Calculating reports whether the history of an action is being counted.
	Calculating(actionID int64) bool
	// CalculatedAt returns the times of the last complete counts; actions
	// without one are left out.
	CalculatedAt(ctx context.Context, actionIDs []int64) (map[int64]time.Time, error)
	// Problem returns why a definition is invalid, or "".
	Problem(d *history.Definition, loc *time.Location) string
}

// Chat validates notification settings.
type Chat interface {
	// CheckFormat returns nil for a valid template, or an Invalid fault with
	// the position of the error.
	CheckFormat(format string) error
	// HasNotifier reports whether a notifier with this name is configured.
	HasNotifier(name string) bool
}

// CohortIDs lists the cohorts of a project.
type CohortIDs interface {
	CohortIDs(ctx context.Context, projectID int64) ([]int64, error)
}

// Refresher reloads the snapshot of a project's actions.
type Refresher interface {
	Refresh(ctx context.Context, projectID int64) error
}

// NewService returns the service over store.
func NewService(store *Store, deps Dependencies) (*Service, error) {
	if deps.Users == nil {
		return nil, errors.New("actions: the service needs users")
	}
	s := &Service{store: store, activity: activity.NewLog(store.db), deps: deps, log: zap.NewNop(), now: deps.Now}
	if deps.Log != nil {
		s.log = deps.Log.Named("actions")
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// clock is the current time in the precision of the store: microseconds, UTC.
func (s *Service) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// Get returns an action of the project, also a deleted one, or NotFound.
func (s *Service) Get(ctx context.Context, projectID, id int64) (Action, error) {
	return s.store.Get(ctx, projectID, id)
}

// Definition returns the definition of an action of the project, also of a
// deleted one, or NotFound.
func (s *Service) Definition(ctx context.Context, projectID, id int64) (history.Definition, error) {
	a, err := s.store.Get(ctx, projectID, id)
	return *a.definition(), err
}

// Location returns the time zone of a project, UTC if it cannot be read.
func (s *Service) Location(ctx context.Context, projectID int64) *time.Location {
	if s.deps.Projects == nil {
		return time.UTC
	}
	return location(ctx, s.deps.Projects, projectID)
}

// List returns the actions of q, and their number without its limit.
func (s *Service) List(ctx context.Context, projectID int64, q Query) ([]Action, int, error) {
	return s.store.list(ctx, projectID, q)
}

// Activity returns entries of the activity log of an action, or of all actions
// if id is 0, newest first, and their total number. An unknown action is
// NotFound.
func (s *Service) Activity(ctx context.Context, projectID, id int64, limit, offset int) ([]activity.Entry, int, error) {
	if id != 0 {
		if _, err := s.store.Get(ctx, projectID, id); err != nil {
			return nil, 0, err
		}
	}
	return s.activity.Find(ctx, activity.Query{ProjectID: projectID, Scope: activity.Action, ItemID: activity.ItemID(id), Limit: limit, Offset: offset})
}

// Create creates an action. It fails with Invalid for the first invalid field.
func (s *Service) Create(ctx context.Context, principal *auth.Principal, project auth.Project, in Input) (Action, error) {
	now := s.clock()
	a := Action{
		ProjectID: project.ID, Tags: []string{}, Steps: []actionmatch.Step{}, Destinations: []Destination{},
		CreatedAt: now, CreatedBy: principal.User.ID, UpdatedAt: now, CalculatedAt: now, Version: 1,
	}
	if err := s.validateInput(ctx, project, a, &in); err != nil {
		return a, err
	}
	err := s.write(ctx, project.ID, func(ctx context.Context) error {
		if err := s.apply(ctx, &a, in); err != nil {
			return err
		}
		if err := s.store.insert(ctx, &a); err != nil {
			return err
		}
		return s.activity.Add(ctx, newEntry(principal, &a, activity.Created, now))
	})
	return a, err
}

// Update changes the fields of in. It fails with NotFound, with Invalid for the
// first invalid field, and with Conflict if in has a version that is not the
// current one. An update without changes writes nothing.
func (s *Service) Update(ctx context.Context, principal *auth.Principal, project auth.Project, id int64, in Input) (Action, error) {
	a, err := s.store.Get(ctx, project.ID, id)
	if err == nil {
		err = s.validateInput(ctx, project, a, &in)
	}
	if err != nil {
		return a, err
	}
	err = s.write(ctx, project.ID, func(ctx context.Context) (err error) {
		if a, err = s.store.Get(ctx, project.ID, id); err != nil {
			return err
		}
		if err := checkVersion(&a, in); err != nil {
			return err
		}
		before := a
		if err := s.apply(ctx, &a, in); err != nil {
			return err
		}
		changes := activity.Diff(activity.Action, before.state(), a.state())
		if len(changes) == 0 && a.CalculatedAt.Equal(before.CalculatedAt) {
			return nil
		}
		a.UpdatedAt, a.Version = s.clock(), before.Version+1
		if err := s.store.update(ctx, &a); err != nil || len(changes) == 0 {
			return err
		}
		done := activity.Updated
		if a.Deleted && !before.Deleted {
			done = activity.Deleted
		}
		e := newEntry(principal, &a, done, a.UpdatedAt)
		e.Detail.Changes = changes
		return s.activity.Add(ctx, e)
	})
	return a, err
}

// checkVersion detects lost updates.
func checkVersion(a *Action, in Input) error {
	if !in.Version.Set || in.Version.Null || in.Version.Value == a.Version {
		return nil
	}
	return fault.Newf(fault.Conflict, "conflict",
		"The action was changed since you read it: it is at version %d, you sent version %d. Read it again and repeat your change.", a.Version, in.Version.Value)
}

// write runs fn in a transaction that locks the project's actions, and then
// reloads the snapshot. A failed reload is logged and not returned: the change
// is committed, and polling loads it later.
func (s *Service) write(ctx context.Context, projectID int64, fn func(ctx context.Context) error) error {
	if err := s.store.writeLocked(ctx, projectID, fn); err != nil {
		return err
	}
	if s.deps.Snapshots == nil {
		return nil
	}
	if err := s.deps.Snapshots.Refresh(context.WithoutCancel(ctx), projectID); err != nil {
		s.log.Warn("action refresh failed", zap.Int64("project_id", projectID), zap.Error(err))
	}
	return nil
}

// calculation is the state of an action's count.
type calculation struct {
	running bool
	at      time.Time
	problem string
}

// views converts actions to their form in answers.
func (s *Service) views(ctx context.Context, project auth.Project, list ...Action) ([]actionView, error) {
	users, actions := make([]int64, len(list)), make([]int64, len(list))
	for i := range list {
		users[i], actions[i] = list[i].CreatedBy, list[i].ID
	}
	found, err := s.deps.Users.UsersByID(ctx, users)
	if err != nil {
		return nil, fmt.Errorf("read the creators of actions: %w", err)
	}
	var counted map[int64]time.Time
	if s.deps.Calculations != nil {
		if counted, err = s.deps.Calculations.CalculatedAt(ctx, actions); err != nil {
			return nil, err
		}
	}
	loc := project.Location()
	views := make([]actionView, len(list))
	for i := range list {
		a := &list[i]
		c := calculation{at: counted[a.ID]}
		if s.deps.Calculations != nil {
			c.running, c.problem = s.deps.Calculations.Calculating(a.ID), s.deps.Calculations.Problem(a.definition(), loc)
		}
		var creator *auth.User
		if u, ok := found[a.CreatedBy]; ok {
			creator = &u
		}
		views[i] = a.view(creator, c)
	}
	return views, nil
}

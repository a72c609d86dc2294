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
	"github.com/guidonhq/guidon/core/match"
)

// Service is what can be done with actions. Every change is one transaction
// with its line in the activity log, and is in the memory of this process
// before the call returns. All methods may be called from any number of
// goroutines.
type Service struct {
	store    *Store
	activity *activity.Log
	deps     Dependencies
	log      *zap.Logger
	now      func() time.Time
}

// Dependencies is whom the service asks.
type Dependencies struct {
	Users Users
	// The rest may be nil: nothing is counted, nothing posted, there are no
	// cohorts and operators to check, it is now, and the log is silent.
	Calculations Calculations
	Chat         Chat
	CohortIDs    CohortIDs
	Operators    match.Registry
	Snapshots    Refresher
	Now          func() time.Time
	Log          *zap.Logger
}

// Users answers who wrote an action.
type Users interface {
	// UsersByID returns those of the users that still exist.
	UsersByID(ctx context.Context, ids []int64) (map[int64]auth.User, error)
}

// Calculations tells how the counting of histories stands.
type Calculations interface {
	// Calculating reports whether the history of an action is being counted.
	Calculating(actionID int64) bool
	// CalculatedAt returns when histories were last counted; those that never
	// were are left out.
	CalculatedAt(ctx context.Context, actionIDs []int64) (map[int64]time.Time, error)
	// Problem is what is wrong with a definition, or "".
	Problem(d *history.Definition, loc *time.Location) string
}

// Chat knows what can be said, and where.
type Chat interface {
	// CheckFormat returns nil for a format that can be rendered, or an Invalid
	// fault that says where it is wrong.
	CheckFormat(format string) error
	// HasNotifier reports whether a notifier of that name is configured.
	HasNotifier(name string) bool
}

// CohortIDs knows which cohorts a project has.
type CohortIDs interface {
	CohortIDs(ctx context.Context, projectID int64) ([]int64, error)
}

// Refresher makes what memory holds of a project's actions current.
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

// clock is the present as the store keeps it: microseconds, UTC.
func (s *Service) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// Get returns an action of the project, a deleted one as well, or NotFound.
func (s *Service) Get(ctx context.Context, projectID, id int64) (Action, error) {
	return s.store.Get(ctx, projectID, id)
}

// Definition returns the definition of an action of the project, also of a
// deleted one, or NotFound.
func (s *Service) Definition(ctx context.Context, projectID, id int64) (history.Definition, error) {
	a, err := s.store.Get(ctx, projectID, id)
	return *a.definition(), err
}

// List returns the actions of q, and how many there are without its limit.
func (s *Service) List(ctx context.Context, projectID int64, q Query) ([]Action, int, error) {
	return s.store.list(ctx, projectID, q)
}

// Activity returns entries of the log of an action, or of all actions if id is
// 0, newest first, and how many there are in all. An unknown action is NotFound.
func (s *Service) Activity(ctx context.Context, projectID, id int64, limit, offset int) ([]activity.Entry, int, error) {
	if id != 0 {
		if _, err := s.store.Get(ctx, projectID, id); err != nil {
			return nil, 0, err
		}
	}
	return s.activity.Find(ctx, activity.Query{ProjectID: projectID, Scope: activity.Action, ItemID: id, Limit: limit, Offset: offset})
}

// Create makes an action. It fails with Invalid for the first broken rule.
func (s *Service) Create(ctx context.Context, who *auth.Principal, project auth.Project, in Input) (Action, error) {
	now := s.clock()
	a := Action{
		ProjectID: project.ID, Tags: []string{}, Steps: []actionmatch.Step{}, Destinations: []Destination{},
		CreatedAt: now, CreatedBy: who.User.ID, UpdatedAt: now, CalculatedAt: now, Version: 1,
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
		return s.activity.Add(ctx, newEntry(who, &a, activity.Created, now))
	})
	return a, err
}

// Update changes the fields of in. It fails with NotFound, and with Invalid for
// the first broken rule. An update that changes nothing writes nothing.
func (s *Service) Update(ctx context.Context, who *auth.Principal, project auth.Project, id int64, in Input) (Action, error) {
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
		e := newEntry(who, &a, done, a.UpdatedAt)
		e.Detail.Changes = changes
		return s.activity.Add(ctx, e)
	})
	return a, err
}

// write runs fn in a transaction that has the project's actions for itself,
// then makes memory current. Memory that cannot be made current now is an entry
// of the log, not an error: the change is committed, and memory is compared
// with the store all the time.
func (s *Service) write(ctx context.Context, projectID int64, fn func(ctx context.Context) error) error {
	if err := s.store.writeLocked(ctx, projectID, fn); err != nil {
		return err
	}
	if s.deps.Snapshots == nil {
		return nil
	}
	if err := s.deps.Snapshots.Refresh(context.WithoutCancel(ctx), projectID); err != nil {
		s.log.Warn("actions in memory are behind the store", zap.Int64("project_id", projectID), zap.Error(err))
	}
	return nil
}

// calculation is how the counting of an action stands.
type calculation struct {
	running bool
	at      time.Time
	problem string
}

// views turns actions into the form answers have.
func (s *Service) views(ctx context.Context, project auth.Project, list ...Action) ([]actionView, error) {
	users, actions := make([]int64, len(list)), make([]int64, len(list))
	for i := range list {
		users[i], actions[i] = list[i].CreatedBy, list[i].ID
	}
	found, err := s.deps.Users.UsersByID(ctx, users)
	if err != nil {
		return nil, fmt.Errorf("find who made actions: %w", err)
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

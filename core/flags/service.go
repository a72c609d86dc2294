package flags

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
)

// Refresher makes what memory holds of a project's flags current.
type Refresher interface {
	Refresh(ctx context.Context, projectID int64) error
}

// Users answers who wrote a flag.
type Users interface {
	// UsersByID returns those of the users that still exist.
	UsersByID(ctx context.Context, ids []int64) (map[int64]auth.User, error)
}

// Service is what can be done with flags, cohorts and their dashboards, by
// people who may. Every change is one transaction with its line in the
// activity log, and is in the memory of this process before the call returns.
// All methods may be called from any number of goroutines.
type Service struct {
	store    *Store
	activity *activity.Log
	deps     Dependencies
	cfg      ManageConfig
	log      *zap.Logger
	now      func() time.Time
}

// Dependencies is whom the service asks.
type Dependencies struct {
	Memory Refresher
	Users  Users
	Roles  Roles
	Source decide.Source
	// The rest may be nil: then there is nobody to count, there are no events
	// and no operators of plugins, it is now, and the log is silent.
	Population Population
	Usage      Usage
	Operators  match.Registry
	Plugins    func() eval.PluginRound // who answers for those, for one count
	Now        func() time.Time
	Log        *zap.Logger
}

// NewService returns the service over store.
func NewService(cfg ManageConfig, store *Store, deps Dependencies) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Memory == nil || deps.Users == nil || deps.Roles == nil || deps.Source == nil {
		return nil, fmt.Errorf("flags: service needs memory, users, roles and a source")
	}
	s := &Service{store: store, activity: activity.NewLog(store.db), deps: deps, cfg: cfg, log: zap.NewNop(), now: deps.Now}
	if deps.Log != nil {
		s.log = deps.Log.Named("flags")
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// clock is the present as the store keeps it: microseconds, UTC.
func (s *Service) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// change runs fn in a transaction that has the project's flags for itself,
// then makes memory current. Memory that cannot be made current now is an
// entry of the log, not an error: the change is committed, and memory is
// compared with the store all the time.
func (s *Service) change(ctx context.Context, projectID int64, fn func(ctx context.Context) error) error {
	if err := s.store.write(ctx, projectID, fn); err != nil {
		return err
	}
	if err := s.deps.Memory.Refresh(context.WithoutCancel(ctx), projectID); err != nil {
		s.log.Warn("flags in memory are behind the store", zap.Int64("project_id", projectID), zap.Error(err))
	}
	return nil
}

// Get returns one flag of the project, deleted ones too, or NotFound.
func (s *Service) Get(ctx context.Context, project auth.Project, id int64) (*Flag, error) {
	return s.store.flag(ctx, project.ID, id)
}

// List returns the flags of q in its order, and how many there are without
// its limit.
func (s *Service) List(ctx context.Context, project auth.Project, q Query) ([]*Flag, int, error) {
	return s.store.list(ctx, project.ID, q, s.now())
}

// Activity returns entries of the log of a flag, or of all flags if id is 0,
// newest first, and how many there are in all. An unknown flag is NotFound; a
// deleted one still has its entries.
func (s *Service) Activity(ctx context.Context, project auth.Project, id int64, limit, offset int) ([]activity.Entry, int, error) {
	if id != 0 {
		if _, err := s.store.flag(ctx, project.ID, id); err != nil {
			return nil, 0, err
		}
	}
	return s.activity.Find(ctx, activity.Query{ProjectID: project.ID, Scope: activity.Flag, ItemID: id, Limit: limit, Offset: offset})
}

// MayEdit is nil when who may change the flag, NotFound when there is none and
// Forbidden when they may not. Ask it before reading what they want: a caller
// without the right learns nothing about the rules.
func (s *Service) MayEdit(ctx context.Context, who *auth.Principal, project auth.Project, id int64) error {
	f, err := s.store.flag(ctx, project.ID, id)
	if err != nil {
		return err
	}
	return s.mayEdit(ctx, who, f)
}

// RemoteConfig returns the payload of a flag that is not deleted, named by its
// key or its id: that of the value true, nil when there is none or the flag is
// off. Keys go before ids.
func (s *Service) RemoteConfig(ctx context.Context, project auth.Project, keyOrID string) (*string, error) {
	f, err := s.store.flagByKey(ctx, project.ID, keyOrID)
	if id, isID := strconv.ParseInt(keyOrID, 10, 64); isID == nil && fault.Is(err, fault.NotFound) {
		f, err = s.store.flag(ctx, project.ID, id)
	}
	if err != nil {
		return nil, err
	}
	if f.Deleted {
		return nil, errNotFound
	}
	filters, err := eval.ParseFilters(f.Filters)
	if payload, ok := filters.Payloads["true"]; ok && err == nil && f.Active {
		return &payload, nil
	}
	return nil, nil
}

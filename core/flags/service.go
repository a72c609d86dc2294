package flags

import (
	"context"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/dashboards"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/match"
)

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

// Dependencies are what the service uses. Operators, Now and Log may be nil: no
// operators of plugins exist, the clock is used, and logging is disabled.
type Dependencies struct {
	Revisions  *revision.Writer
	Cohorts    *cohorts.Store
	Dashboards *dashboards.Service
	Audience   *audience.Counter
	Users      Users
	Roles      Roles
	Operators  match.Registry
	Now        func() time.Time
	Log        *zap.Logger
}

// NewService returns the service over store.
func NewService(cfg ManageConfig, store *Store, deps Dependencies) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
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
	parsed, err := filters.Parse(f.Filters)
	if payload, ok := parsed.Payloads["true"]; ok && err == nil && f.Active {
		return &payload, nil
	}
	return nil, nil
}

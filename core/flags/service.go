package flags

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/flags/access"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/continuity"
	"github.com/guidonhq/guidon/core/flags/dashboards"
	"github.com/guidonhq/guidon/core/flags/history"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/match"
)

// Service reads and changes the flags of projects. It is composed by topic: reads,
// changes, role access, usage, and the audience of a condition set. Every change
// is one transaction with its entry in the activity log. A change of a flag is
// visible in the memory of this process when the call returns. It is safe for
// concurrent use.
type Service struct {
	*reader
	*editor
	*accessManager
	*usageManager
	*audienceCounter
}

// Users reads the creators and editors of flags.
type Users interface {
	// UsersByID returns the users that exist.
	UsersByID(ctx context.Context, ids []int64) (map[int64]auth.User, error)
}

// Dependencies are what the service uses. Nil Operators knows no operators of
// plugins, nil Now uses the clock.
type Dependencies struct {
	Revisions  *revision.Writer
	Cohorts    *cohorts.Store
	HashKeys   *continuity.Store
	Dashboards *dashboards.Service
	Audience   *audience.Counter
	Users      Users
	Roles      Roles
	Operators  match.Registry
	Payloads   *sealed.Keyring // of encrypted payloads; nil encrypts none
	Sets       cohorts.Sets    // the flags in memory; nil is none
	// Definitions reads the flags of a project, also in a transaction.
	Definitions audience.Source
	Now         func() time.Time
}

// NewService returns the service over store.
func NewService(cfg ManageConfig, store *Store, deps Dependencies) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	sh := &shared{store: store, activity: activity.NewLog(store.db), sealer: history.NewSealer(store.db, deps.Payloads), deps: deps, cfg: cfg}
	access := &accessManager{shared: sh, policy: access.NewPolicy(deps.Roles, store)}
	read := &reader{shared: sh, access: access}
	fields := &applier{shared: sh}
	edit := &editor{shared: sh, access: access, fields: fields, checks: &checker{shared: sh, read: read}}
	return &Service{
		reader: read, editor: edit, accessManager: access,
		usageManager:    &usageManager{shared: sh, access: access, editor: edit},
		audienceCounter: &audienceCounter{shared: sh, fields: fields},
	}, nil
}

// The topics of the service.
type (
	// reader reads flags and builds their JSON form.
	reader struct {
		*shared
		access *accessManager
	}
	// editor creates, updates and rolls back flags.
	editor struct {
		*shared
		access *accessManager
		fields *applier
		checks *checker
	}
	// applier applies the fields of a request to a flag and checks the write rules.
	applier struct{ *shared }
	// checker compares a change with other changes and with dependent flags.
	checker struct {
		*shared
		read *reader
	}
	// accessManager decides who may edit a flag, and manages role access.
	accessManager struct {
		*shared
		policy *access.Policy
	}
	// usageManager creates usage dashboards and counts calls.
	usageManager struct {
		*shared
		access *accessManager
		editor *editor
	}
	// audienceCounter counts the persons that a condition set selects.
	audienceCounter struct {
		*shared
		fields *applier
	}
)

// shared is what the topics have in common.
type shared struct {
	store    *Store
	activity *activity.Log
	sealer   *history.Sealer
	deps     Dependencies
	cfg      ManageConfig
}

// now returns the time as the store keeps it: microseconds, UTC.
func (s *shared) now() time.Time { return s.deps.Now().UTC().Truncate(time.Microsecond) }

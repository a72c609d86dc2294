package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db/dbclock"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/retry"
)

// interval is the time between two looks for due changes.
const interval = 5 * time.Second

// Service schedules changes, and applies them between Start and Stop. It is safe
// for concurrent use.
type Service struct {
	store    *Store
	flags    Flags
	accounts Accounts
	log      *zap.Logger
	runner   retry.Service
	database *dbclock.Clock
}

// NewService returns the service over store.
func NewService(store *Store, flags Flags, accounts Accounts, log *zap.Logger) *Service {
	return &Service{store: store, flags: flags, accounts: accounts, log: log.Named("schedule"), database: dbclock.New(store.db)}
}

// Start begins to apply due changes.
func (s *Service) Start(context.Context) error {
	s.runner.Start()
	s.runner.Every(interval, func(ctx context.Context) {
		if !s.store.db.IsReady() {
			return // the server waits for its database
		}
		if err := s.runDueNow(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("scheduled changes delayed", zap.Error(err))
		}
	})
	return nil
}

// runDueNow applies the due changes by the clock of the database: a node whose clock is
// ahead applies none early.
func (s *Service) runDueNow(ctx context.Context) error {
	if err := s.database.Sync(ctx); err != nil {
		return err
	}
	return s.RunDue(ctx, s.database.Now())
}

// Stop waits for the change that is applied.
func (s *Service) Stop(ctx context.Context) error { return s.runner.Stop(ctx) }

// Create schedules a change of a flag. It fails with NotFound for an unknown flag,
// with Forbidden unless the caller may edit it, and with Invalid for an unknown
// operation and a time that has passed.
func (s *Service) Create(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64, payload json.RawMessage, at time.Time) (Change, error) {
	if err := s.flags.MayEdit(ctx, who, project, flagID); err != nil {
		return Change{}, err
	}
	if _, err := readOperation(payload); err != nil {
		return Change{}, err
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	if !at.After(now) {
		return Change{}, fault.Field("scheduled_at", "invalid_input", "The time must be in the future.")
	}
	c := Change{ProjectID: project.ID, FlagID: flagID, ScheduledAt: at, CreatedBy: who.User.ID, CreatedAt: now, UpdatedAt: now}
	err := s.flags.Schedule(ctx, who, project, flagID, payload, func(ctx context.Context, payload json.RawMessage) error {
		c.Payload = payload
		return s.store.insert(ctx, &c)
	})
	return c, err
}

// Delete deletes a change that is not executed. It fails with NotFound, Forbidden,
// and Conflict for an executed one.
func (s *Service) Delete(ctx context.Context, who *auth.Principal, project auth.Project, id int64) error {
	c, err := s.store.get(ctx, project.ID, id)
	if err != nil {
		return err
	}
	if err := s.flags.MayEdit(ctx, who, project, c.FlagID); err != nil {
		return err
	}
	return s.store.delete(ctx, project.ID, id)
}

// duePage is the number of changes of one look.
const duePage = 100

// RunDue applies the changes whose time has come at now. An error is one of the
// database: the remaining changes stay open.
func (s *Service) RunDue(ctx context.Context, now time.Time) error {
	due, err := s.store.due(ctx, now, duePage)
	if err != nil {
		return err
	}
	for i := range due {
		if err := s.run(ctx, &due[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) run(ctx context.Context, c *Change) error {
	at := time.Now()
	err := s.apply(ctx, c, at)
	problem := fault.From(err)
	fields := []zap.Field{zap.Int64("change_id", c.ID), zap.Int64("project_id", c.ProjectID), zap.Int64("flag_id", c.FlagID)}
	switch {
	case err == nil:
		s.log.Info("scheduled change applied", fields...)
		return nil
	case errors.Is(err, errExecuted):
		return nil
	case problem == nil || problem.Kind == fault.Unavailable:
		return err
	}
	s.log.Warn("scheduled change failed", append(fields, zap.Error(err))...)
	if err := s.store.mark(ctx, c.ID, at, problem.Detail); !errors.Is(err, errExecuted) {
		return err
	}
	return nil
}

func (s *Service) apply(ctx context.Context, c *Change, at time.Time) error {
	op, err := readOperation(c.Payload)
	if err != nil {
		return err
	}
	project, err := s.accounts.Project(ctx, c.ProjectID)
	if err != nil {
		return err
	}
	who, err := s.creator(ctx, project, c.CreatedBy)
	if err != nil {
		return err
	}
	return s.flags.Apply(ctx, who, project, c.FlagID, c.ID, op, func(ctx context.Context) error { return s.store.mark(ctx, c.ID, at, "") })
}

// creator returns the user who scheduled a change with the current rights of that
// user, or Forbidden for a user who has left.
func (s *Service) creator(ctx context.Context, project auth.Project, userID int64) (*auth.Principal, error) {
	members, err := s.accounts.Members(ctx, project.OrganizationID)
	if err != nil {
		return nil, err
	}
	for i := range members {
		if members[i].User.ID == userID {
			return &auth.Principal{User: members[i].User, OrganizationID: project.OrganizationID, OrgLevel: members[i].Level}, nil
		}
	}
	return nil, fault.New(fault.Forbidden, "permission_denied", "The user who scheduled the change is no longer a member of the organization.")
}

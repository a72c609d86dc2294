package flags

import (
	"context"
	"encoding/json"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Create makes a flag. The key of a deleted flag may be used again: the old
// row keeps its id and history under a retired key. The error is the first
// broken rule, an Invalid fault.
func (s *Service) Create(ctx context.Context, who *auth.Principal, project auth.Project, in Input) (*Flag, error) {
	if in.Key == nil {
		return nil, fault.Field("key", "required", "This field is required.")
	}
	now := s.clock()
	f := &Flag{
		ProjectID: project.ID, CreatedAt: now, CreatedBy: who.User.ID,
		Fields: Fields{
			Filters: json.RawMessage("{}"), Active: true, RollbackConditions: json.RawMessage("null"), Tags: []string{}, AnalyticsDashboards: []int64{},
		},
	}
	err := s.deps.Revisions.ChangeAndRefresh(ctx, project.ID, func(ctx context.Context) error {
		if err := s.apply(ctx, f, in); err != nil {
			return err
		}
		f.UpdatedAt, f.UpdatedBy, f.Version = now, who.User.ID, 1
		if err := s.store.insert(ctx, f); err != nil {
			return err
		}
		if in.UsageDashboard == nil || *in.UsageDashboard {
			if err := s.attachUsageDashboard(ctx, who, f); err != nil {
				return err
			}
			if err := s.store.update(ctx, f); err != nil {
				return err
			}
		}
		if err := s.store.keepVersion(ctx, f); err != nil {
			return err
		}
		e := activity.NewEntry(who, project.ID, activity.Flag, f.ID, activity.Created, now)
		e.Detail.Name = f.Key
		return s.activity.Add(ctx, e)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Update changes the fields of in. It fails with NotFound; with Forbidden when
// who may not edit the flag; with Conflict when in.Version is behind; and with
// Invalid for the first broken rule. An update that changes nothing writes
// nothing.
func (s *Service) Update(ctx context.Context, who *auth.Principal, project auth.Project, id int64, in Input) (*Flag, error) {
	return s.edit(ctx, who, project, id, nil, func(ctx context.Context, f *Flag) error {
		if err := s.conflict(ctx, f, in); err != nil {
			return err
		}
		return s.apply(ctx, f, in)
	})
}

// edit reads a flag, lets fn change it, checks what depends on it and stores
// the outcome as a new version with its line in the log.
func (s *Service) edit(ctx context.Context, who *auth.Principal, project auth.Project, id int64, why *activity.Trigger, fn func(ctx context.Context, f *Flag) error) (*Flag, error) {
	var out *Flag
	err := s.deps.Revisions.ChangeAndRefresh(ctx, project.ID, func(ctx context.Context) error {
		f, err := s.store.flag(ctx, project.ID, id)
		if err != nil {
			return err
		}
		if err := s.mayEdit(ctx, who, f); err != nil {
			return err
		}
		before := *f
		out = f
		if err := fn(ctx, f); err != nil {
			return err
		}
		if err := s.dependents(ctx, &before, f); err != nil {
			return err
		}
		return s.save(ctx, who, &before, f, why)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// save stores f when it differs from what it was.
func (s *Service) save(ctx context.Context, who *auth.Principal, before, f *Flag, why *activity.Trigger) error {
	changes := activity.Diff(activity.Flag, before.Fields, f.Fields)
	if len(changes) == 0 && f.CreatedAt.Equal(before.CreatedAt) {
		return nil
	}
	f.UpdatedAt, f.UpdatedBy, f.Version = s.clock(), who.User.ID, before.Version+1
	if err := s.store.update(ctx, f); err != nil {
		return err
	}
	if err := s.store.keepVersion(ctx, f); err != nil {
		return err
	}
	if f.Key != before.Key {
		if err := s.deps.Dashboards.RenameUsage(ctx, f.ProjectID, f.ID, before.Key, f.Key); err != nil {
			return err
		}
		if err := s.store.renameHashKeys(ctx, f.ProjectID, before.Key, f.Key); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return nil
	}
	e := activity.NewEntry(who, f.ProjectID, activity.Flag, f.ID, activity.Updated, f.UpdatedAt)
	e.Detail.Name, e.Detail.Changes, e.Detail.Trigger = f.Key, changes, why
	return s.activity.Add(ctx, e)
}

package flags

import (
	"context"
	"encoding/json"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/fields"
	"github.com/guidonhq/guidon/core/flags/history"
	"github.com/guidonhq/guidon/core/flags/sealed"
)

// Create stores a new flag. If a deleted flag has the key, that flag keeps its id
// and history, and its key gets a suffix. It fails with Forbidden if the caller
// may only view flags, and with Invalid for the first broken rule.
func (e *editor) Create(ctx context.Context, who *auth.Principal, project auth.Project, in Input) (*Flag, error) {
	if in.Key == nil {
		return nil, fault.Field("key", "required", "This field is required.")
	}
	now := e.now()
	f := &Flag{
		ProjectID: project.ID, CreatedAt: now, CreatedBy: who.User.ID,
		Fields: Fields{
			Filters: json.RawMessage("{}"), Active: true, RollbackConditions: json.RawMessage("null"), Tags: []string{}, AnalyticsDashboards: []int64{},
			Bucketing: fields.ByDistinctID, Runtime: eval.AnyRuntime.String(), Contexts: []string{},
		},
	}
	in.checked = e.fields.check(ctx, f, in.Filters)
	err := e.deps.Revisions.ChangeAndRefresh(ctx, project.ID, func(ctx context.Context) error {
		if err := e.access.MayCreate(ctx, who); err != nil {
			return err
		}
		if err := e.fields.apply(ctx, f, in); err != nil {
			return err
		}
		f.UpdatedAt, f.UpdatedBy, f.Version = now, who.User.ID, 1
		if err := e.store.insert(ctx, f); err != nil {
			return err
		}
		if in.UsageDashboard == nil || *in.UsageDashboard {
			if err := e.attachUsageDashboard(ctx, who, f); err != nil {
				return err
			}
			if err := e.store.update(ctx, f); err != nil {
				return err
			}
		}
		if err := e.store.addVersion(ctx, f); err != nil {
			return err
		}
		entry := activity.NewEntry(who, project.ID, activity.Flag, f.ID, activity.Created, now)
		entry.Detail.Name = f.Key
		return e.activity.Add(ctx, entry)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Update changes the fields of in. It fails with NotFound; with Forbidden if the
// caller may not edit the flag; with Conflict if in.Version is out of date; and
// with Invalid for the first broken rule. An update without changes writes
// nothing.
func (e *editor) Update(ctx context.Context, who *auth.Principal, project auth.Project, id int64, in Input) (*Flag, error) {
	in.checked = e.fields.check(ctx, &Flag{ID: id, ProjectID: project.ID}, in.Filters)
	mark, err := e.sealHistory(ctx, who, project, id, in.EncryptedPayloads != nil && *in.EncryptedPayloads)
	if err != nil {
		return nil, err
	}
	return e.edit(ctx, who, project, id, nil, func(ctx context.Context, f *Flag) error {
		before := *f
		if err := e.checks.checkConflict(ctx, f, in); err != nil {
			return err
		}
		if err := e.fields.apply(ctx, f, in); err != nil {
			return err
		}
		return e.sealRest(ctx, &before, f, mark)
	})
}

// sealHistory encrypts the payloads in the history of a flag that is about to get
// encrypted payloads, if the caller may edit it. The transaction of the change then
// encrypts the rest: sealRest.
func (e *editor) sealHistory(ctx context.Context, who *auth.Principal, project auth.Project, id int64, encrypted bool) (history.Mark, error) {
	if !encrypted {
		return history.Mark{}, nil
	}
	f, err := e.store.flag(ctx, project.ID, id)
	if err == nil {
		err = e.access.mayEdit(ctx, who, f)
	}
	if err != nil || f.EncryptedPayloads {
		return history.Mark{}, err
	}
	return e.sealer.Seal(ctx, project.ID, id, history.Mark{})
}

// sealRest encrypts the payloads in the history of f after mark, if the payloads of
// f became encrypted.
func (e *editor) sealRest(ctx context.Context, before, f *Flag, mark history.Mark) error {
	if before.EncryptedPayloads || !f.EncryptedPayloads {
		return nil
	}
	_, err := e.sealer.Seal(ctx, f.ProjectID, f.ID, mark)
	return err
}

// edit reads a flag, changes it with fn, checks its dependencies and stores it as
// a new version with an activity entry. trigger may be nil.
func (e *editor) edit(ctx context.Context, who *auth.Principal, project auth.Project, id int64, trigger *activity.Trigger, fn func(ctx context.Context, f *Flag) error) (*Flag, error) {
	var out *Flag
	err := e.deps.Revisions.ChangeAndRefresh(ctx, project.ID, func(ctx context.Context) error {
		f, err := e.store.flag(ctx, project.ID, id)
		if err != nil {
			return err
		}
		if err := e.access.mayEdit(ctx, who, f); err != nil {
			return err
		}
		before := *f
		out = f
		if err := fn(ctx, f); err != nil {
			return err
		}
		if err := e.checks.checkDependencies(ctx, &before, f); err != nil {
			return err
		}
		return e.save(ctx, who, &before, f, trigger)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// attachUsageDashboard creates a usage dashboard for f and links it.
func (e *editor) attachUsageDashboard(ctx context.Context, who *auth.Principal, f *Flag) error {
	id, err := e.deps.Dashboards.CreateUsage(ctx, f.ProjectID, f.ID, f.Key, who.User.ID)
	f.UsageDashboard = &id
	return err
}

// save stores f with a new version and an activity entry if it differs from
// before.
func (e *editor) save(ctx context.Context, who *auth.Principal, before, f *Flag, trigger *activity.Trigger) error {
	changes := activity.Diff(activity.Flag, before.Fields, f.Fields)
	if len(changes) == 0 && f.CreatedAt.Equal(before.CreatedAt) {
		return nil
	}
	f.UpdatedAt, f.UpdatedBy, f.Version = e.now(), who.User.ID, before.Version+1
	if err := e.store.update(ctx, f); err != nil {
		return err
	}
	if err := e.store.addVersion(ctx, f); err != nil {
		return err
	}
	if f.Key != before.Key {
		if err := e.deps.Dashboards.RenameUsage(ctx, f.ProjectID, f.ID, before.Key, f.Key); err != nil {
			return err
		}
		if err := e.deps.HashKeys.RenameFlag(ctx, f.ProjectID, before.Key, f.Key); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return nil
	}
	for i := range changes {
		c := &changes[i]
		c.Before, c.After = sealed.Redact(c.Before), sealed.Redact(c.After)
		if f.EncryptedPayloads && c.Field == "filters" { // before may have them in clear
			c.Before, _ = sealed.Hide(c.Before)
			c.After, _ = sealed.Hide(c.After)
		}
	}
	entry := activity.NewEntry(who, f.ProjectID, activity.Flag, f.ID, activity.Updated, f.UpdatedAt)
	entry.Detail.Name, entry.Detail.Changes, entry.Detail.Trigger = f.Key, changes, trigger
	return e.activity.Add(ctx, entry)
}

package flags

import (
	"context"
	"slices"
	"strconv"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/jsontext"
)

// Rollback restores the fields of a flag from a version, as a new version. The
// references of the flag are checked like those of an update, and deleted
// dashboards are dropped. Payloads that were encrypted since the version stay
// encrypted. It fails with NotFound, with Forbidden, or with Invalid
// on the field "version" if the flag never had that version.
func (e *editor) Rollback(ctx context.Context, who *auth.Principal, project auth.Project, id, version int64) (*Flag, error) {
	trigger := &activity.Trigger{JobType: "rollback", JobID: strconv.FormatInt(version, 10), Payload: map[string]any{"version": version}}
	past, _, ok, err := e.store.version(ctx, id, version)
	checked := e.fields.check(ctx, &Flag{ID: id, ProjectID: project.ID}, past.Filters)
	mark, sealErr := e.sealHistory(ctx, who, project, id, past.EncryptedPayloads || sealed.HasSealed(past.Filters))
	if sealErr != nil {
		return nil, sealErr
	}
	return e.edit(ctx, who, project, id, trigger, func(ctx context.Context, f *Flag) error {
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.Fieldf("version", "does_not_exist", "Feature flag %d has no version %d.", id, version)
		}
		before := *f
		if err := e.restore(ctx, f, past, checked); err != nil {
			return err
		}
		return e.sealRest(ctx, &before, f, mark)
	})
}

// restore gives f the fields of a version.
func (e *editor) restore(ctx context.Context, f *Flag, past Fields, checked rules.Checked) error {
	if err := e.fields.applyKey(ctx, f, Input{Key: &past.Key, Deleted: &past.Deleted}); err != nil {
		return err
	}
	if !jsontext.Equal(f.Filters, past.Filters) {
		if err := e.fields.setFilters(ctx, f, checked); err != nil {
			return err
		}
	}
	known, err := e.deps.Dashboards.Existing(ctx, f.ProjectID, past.AnalyticsDashboards)
	if err != nil {
		return err
	}
	past.AnalyticsDashboards = slices.DeleteFunc(slices.Clone(past.AnalyticsDashboards), func(id int64) bool { return !known[id] })
	past.Key, past.Filters, past.UsageDashboard = f.Key, f.Filters, f.UsageDashboard
	// The payloads of a version from before their encryption are encrypted, and stay so.
	past.EncryptedPayloads = past.EncryptedPayloads || sealed.HasSealed(past.Filters)
	past.Filters, err = e.deps.Payloads.Apply(f.ProjectID, past.EncryptedPayloads, past.RemoteConfiguration, past.Filters, past.Filters)
	f.Fields = past
	return err
}

package flags

import (
	"context"
	"slices"
	"strconv"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
)

// Rollback gives a flag the state it had at a version, as a new version. What
// the flag points at is checked as if it were written today, and dashboards
// that are gone stay gone. It fails with NotFound, Forbidden, or Invalid on
// the field "version" when the flag never had that version.
func (s *Service) Rollback(ctx context.Context, who *auth.Principal, project auth.Project, id, version int64) (*Flag, error) {
	why := &activity.Trigger{JobType: "rollback", JobID: strconv.FormatInt(version, 10), Payload: map[string]any{"version": version}}
	return s.edit(ctx, who, project, id, why, func(ctx context.Context, f *Flag) error {
		past, ok, err := s.store.version(ctx, id, version)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Fieldf("version", "does_not_exist", "Feature flag %d has no version %d.", id, version)
		}
		return s.restore(ctx, f, past)
	})
}

// restore puts a past Fields into f.
func (s *Service) restore(ctx context.Context, f *Flag, past Fields) error {
	if err := s.applyKey(ctx, f, Input{Key: &past.Key, Deleted: &past.Deleted}); err != nil {
		return err
	}
	if !jsontext.Equal(f.Filters, past.Filters) {
		if err := s.setFilters(ctx, f, past.Filters); err != nil {
			return err
		}
	}
	known, err := s.deps.Dashboards.Existing(ctx, f.ProjectID, past.AnalyticsDashboards)
	if err != nil {
		return err
	}
	past.AnalyticsDashboards = slices.DeleteFunc(slices.Clone(past.AnalyticsDashboards), func(id int64) bool { return !known[id] })
	past.Key, past.Filters, past.UsageDashboard = f.Key, f.Filters, f.UsageDashboard
	f.Fields = past
	return nil
}

package flags

import (
	"context"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/dashboards"
)

// CreateUsageDashboard creates a new usage dashboard for a flag and links it
// instead of the old one. It fails with NotFound and Forbidden.
func (m *usageManager) CreateUsageDashboard(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64) (*Flag, error) {
	return m.editor.edit(ctx, who, project, flagID, nil, func(ctx context.Context, f *Flag) error {
		return m.editor.attachUsageDashboard(ctx, who, f)
	})
}

// EnrichUsageDashboard adds the tiles about views and interactions to the usage
// dashboard of a flag. It fails with NotFound, with Forbidden, or with Invalid;
// see dashboards.Service.Enrich.
func (m *usageManager) EnrichUsageDashboard(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64) error {
	return m.deps.Revisions.Change(ctx, project.ID, func(ctx context.Context) error {
		f, err := m.store.flag(ctx, project.ID, flagID)
		if err != nil {
			return err
		}
		if err := m.access.mayEdit(ctx, who, f); err != nil {
			return err
		}
		var id int64 // no dashboard has id 0
		if f.UsageDashboard != nil {
			id = *f.UsageDashboard
		}
		return m.deps.Dashboards.Enrich(ctx, project.ID, id, f.EnrichedAnalytics)
	})
}

// FlagUsage counts the calls of a flag over the last days, by response. It fails
// with NotFound.
func (m *usageManager) FlagUsage(ctx context.Context, project auth.Project, id int64, days int) (*Flag, *dashboards.Usage, error) {
	f, err := m.store.flag(ctx, project.ID, id)
	if err != nil {
		return nil, nil, err
	}
	usage, err := m.deps.Dashboards.FlagUsage(ctx, project, f.keyInEvents(), days)
	return f, usage, err
}

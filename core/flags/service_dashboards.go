package flags

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Usage counts the stored events that clients report about flags.
type Usage interface {
	// Series counts the events of q, one Series for each value of the
	// breakdown, the largest first. It keeps to the deadline of ctx.
	Series(ctx context.Context, q SeriesQuery) ([]Series, error)
}

// SeriesQuery says which events are counted, and how.
type SeriesQuery struct {
	ProjectID int64
	Event     string
	Property  string // only events whose property has the text Value
	Value     string
	Breakdown string         // property whose texts make the series; empty makes one
	Unique    bool           // count people instead of events
	From, To  time.Time      // the beginning of the first day, and the end
	Location  *time.Location // whose days
}

// Series is the counts for one value of the breakdown.
type Series struct {
	Value string
	Days  map[string]int64 // by day, as 2006-01-02; days without events are left out
	Count int64            // over the whole time; of people, each once
}

// attachUsageDashboard gives a flag a new usage dashboard.
func (s *Service) attachUsageDashboard(ctx context.Context, who *auth.Principal, f *Flag) error {
	d := usageDashboard(f, who.User.ID, s.clock())
	if err := s.store.insertDashboard(ctx, d); err != nil {
		return err
	}
	f.UsageDashboard = d.ID
	return nil
}

// NewUsageDashboard makes another usage dashboard for a flag and links it in
// place of the former. It fails with NotFound and Forbidden.
func (s *Service) NewUsageDashboard(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64) (*Flag, error) {
	return s.edit(ctx, who, project, flagID, nil, func(ctx context.Context, f *Flag) error {
		return s.attachUsageDashboard(ctx, who, f)
	})
}

// EnrichUsageDashboard adds the tiles about views and uses of the feature to
// the usage dashboard of a flag. It fails with NotFound, Forbidden, or Invalid
// when there is no usage dashboard, it has these tiles already, or the flag
// has no enriched analytics, in this order.
func (s *Service) EnrichUsageDashboard(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64) error {
	return s.store.write(ctx, project.ID, func(ctx context.Context) error {
		f, err := s.store.flag(ctx, project.ID, flagID)
		if err != nil {
			return err
		}
		if err := s.mayEdit(ctx, who, f); err != nil {
			return err
		}
		if f.UsageDashboard == 0 {
			return fault.New(fault.Invalid, codeInvalid, "Usage dashboard not found")
		}
		d, err := s.store.dashboard(ctx, project.ID, f.UsageDashboard)
		switch {
		case fault.Is(err, fault.NotFound):
			return fault.New(fault.Invalid, codeInvalid, "Usage dashboard not found")
		case err != nil:
			return err
		case d.enriched():
			return fault.New(fault.Invalid, codeInvalid, "Usage dashboard already has enriched data")
		case !f.EnrichedAnalytics:
			return fault.New(fault.Invalid, codeInvalid, "No enriched analytics available for this feature flag")
		}
		return s.store.addTiles(ctx, d.ID, enrichedTiles())
	})
}

// Dashboards returns a page of the project's dashboards without tiles, newest
// first, and how many there are.
func (s *Service) Dashboards(ctx context.Context, project auth.Project, limit, offset int) ([]*Dashboard, int, error) {
	return s.store.dashboards(ctx, project.ID, limit, offset)
}

// Dashboard returns a dashboard with its tiles, or NotFound.
func (s *Service) Dashboard(ctx context.Context, project auth.Project, id int64) (*Dashboard, error) {
	return s.store.dashboard(ctx, project.ID, id)
}

// DashboardChange is what may be said about a dashboard; nil stays as it is.
type DashboardChange struct {
	Name        *string
	Description *string
	Tags        *[]string
	Deleted     *bool
}

// UpdateDashboard changes a dashboard. A deleted one is gone for readers and
// for the flags that showed it.
func (s *Service) UpdateDashboard(ctx context.Context, project auth.Project, id int64, c DashboardChange) (*Dashboard, error) {
	var d *Dashboard
	err := s.store.write(ctx, project.ID, func(ctx context.Context) (err error) {
		if d, err = s.store.dashboard(ctx, project.ID, id); err != nil {
			return err
		}
		if c.Name != nil {
			d.Name = *c.Name
		}
		if c.Description != nil {
			d.Description = *c.Description
		}
		if c.Tags != nil {
			d.Tags = *c.Tags
		}
		d.Deleted = c.Deleted != nil && *c.Deleted
		d.UpdatedAt = s.clock()
		if err := s.store.updateDashboard(ctx, d); err != nil || !d.Deleted {
			return err
		}
		return s.store.unlinkDashboard(ctx, project.ID, id)
	})
	return d, err
}

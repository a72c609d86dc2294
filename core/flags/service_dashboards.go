package flags

import (
	"context"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/rules"
)

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
			return fault.New(fault.Invalid, rules.CodeInvalid, "Usage dashboard not found")
		}
		d, err := s.store.dashboard(ctx, project.ID, f.UsageDashboard)
		switch {
		case fault.Is(err, fault.NotFound):
			return fault.New(fault.Invalid, rules.CodeInvalid, "Usage dashboard not found")
		case err != nil:
			return err
		case d.enriched():
			return fault.New(fault.Invalid, rules.CodeInvalid, "Usage dashboard already has enriched data")
		case !f.EnrichedAnalytics:
			return fault.New(fault.Invalid, rules.CodeInvalid, "No enriched analytics available for this feature flag")
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

// tiles computes what the tiles of a dashboard show. A tile whose events
// cannot be counted now says so; the others are there.
func (s *Service) tiles(ctx context.Context, project auth.Project, d *Dashboard) ([]tileView, error) {
	views := make([]tileView, 0, len(d.Tiles))
	key := ""
	if d.FlagID != 0 {
		f, err := s.store.flag(ctx, project.ID, d.FlagID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		if err == nil {
			key = liveKey(f)
		}
	}
	sp := lastDays(s.now(), project.Location(), daysOf(d.DateFrom))
	for _, t := range d.Tiles {
		v := tileView{
			ID: t.ID, Name: t.Name, Description: t.Description, Days: sp.days, Result: []seriesView{},
			Query: queryView{TileQuery: t.Query, Value: key, DateFrom: d.DateFrom, Interval: "day"},
		}
		if err := s.fillTile(ctx, project, &v, sp); err != nil {
			s.log.Warn("a tile cannot be computed", zap.Int64("dashboard_id", d.ID), zap.Int64("tile_id", t.ID), zap.Error(err))
			v.Error = "The events of this tile cannot be counted now."
		}
		views = append(views, v)
	}
	return views, nil
}

func (s *Service) fillTile(ctx context.Context, project auth.Project, v *tileView, sp span) error {
	if s.deps.Usage == nil {
		return nil
	}
	q := v.Query
	lines, err := s.lines(ctx, UsageQuery{ProjectID: project.ID, Event: q.Event, Property: q.Property, Value: q.Value, Breakdown: q.Breakdown}, sp)
	if err != nil {
		return err
	}
	for _, l := range lines {
		series := seriesView{Label: l.value, Breakdown: l.value, Data: l.events, Count: l.total.Events}
		if q.Math == mathUnique {
			series.Data, series.Count = l.people, l.total.People
		}
		if q.Breakdown == "" {
			series.Label = q.Event
		}
		v.Result = append(v.Result, series)
	}
	return nil
}

// daysOf reads how far back a dashboard looks; 30 days when it does not say.
func daysOf(dateFrom string) int {
	const usual, most = 30, 366
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(dateFrom, "-"), "d"))
	if err != nil || n < 1 {
		return usual
	}
	return min(n, most)
}

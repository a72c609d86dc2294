package dashboards

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/revision"
)

// Flags are the flags that dashboards belong to.
type Flags interface {
	// KeyInEvents returns the key of a flag in the events of clients, "" if the
	// flag does not exist.
	KeyInEvents(ctx context.Context, projectID, flagID int64) (string, error)
	// UnlinkDashboard removes a dashboard from the flags that show it.
	UnlinkDashboard(ctx context.Context, projectID, dashboardID int64) error
}

// Users reads the creators of dashboards.
type Users interface {
	// UsersByID returns those of the users that exist.
	UsersByID(ctx context.Context, ids []int64) (map[int64]auth.User, error)
}

// Access decides who may change dashboards.
type Access interface {
	// RequirePartEditor fails with Forbidden unless the caller may edit the flag
	// or, if flagID is 0, all flags.
	RequirePartEditor(ctx context.Context, who *auth.Principal, projectID, flagID int64) error
	// RequireEditor fails with Forbidden unless the caller may edit all flags.
	RequireEditor(ctx context.Context, who *auth.Principal) error
}

// Events counts stored events.
type Events interface {
	Counts(ctx context.Context, q events.CountQuery) ([]events.Count, error)
}

// Dependencies are what the service uses. Events, Now and Log may be nil: tiles
// are empty, the clock is used, and logging is disabled.
type Dependencies struct {
	Revisions *revision.Writer
	Flags     Flags
	Users     Users
	Access    Access
	Events    Events
	Now       func() time.Time
	Log       *zap.Logger
}

// Service reads, changes and computes dashboards. It is safe for concurrent use.
type Service struct {
	store *Store
	deps  Dependencies
	log   *zap.Logger
}

// NewService returns the service over store.
func NewService(store *Store, deps Dependencies) *Service {
	s := &Service{store: store, deps: deps, log: zap.NewNop()}
	if deps.Log != nil {
		s.log = deps.Log.Named("flags")
	}
	if deps.Now == nil {
		s.deps.Now = time.Now
	}
	return s
}

// CreateUsage stores a generated dashboard for a flag and returns its id. It
// joins the transaction in ctx.
func (s *Service) CreateUsage(ctx context.Context, projectID, flagID int64, key string, by int64) (int64, error) {
	d := newUsageDashboard(projectID, flagID, key, by, s.now())
	err := s.store.insert(ctx, d)
	return d.ID, err
}

// now is the time as the store keeps it: microseconds, UTC.
func (s *Service) now() time.Time { return s.deps.Now().UTC().Truncate(time.Microsecond) }

// Enrich adds the tiles about views and interactions. available reports whether
// the flag has enriched analytics. Enrich fails with Invalid if the dashboard
// does not exist, has these tiles already, or available is false, in this order.
func (s *Service) Enrich(ctx context.Context, projectID, id int64, available bool) error {
	d, err := s.store.dashboard(ctx, projectID, id)
	switch {
	case id == 0, fault.Is(err, fault.NotFound):
		return fault.New(fault.Invalid, codeInvalid, "Usage dashboard not found")
	case err != nil:
		return err
	case d.enriched():
		return fault.New(fault.Invalid, codeInvalid, "Usage dashboard already has enriched data")
	case !available:
		return fault.New(fault.Invalid, codeInvalid, "No enriched analytics available for this feature flag")
	}
	return s.store.addTiles(ctx, d.ID, enrichedTiles())
}

const codeInvalid = "invalid_input"

// RenameUsage renames the generated dashboards of a flag after its key, unless a
// user has renamed them. It joins the transaction in ctx.
func (s *Service) RenameUsage(ctx context.Context, projectID, flagID int64, oldKey, newKey string) error {
	return s.store.renameUsage(ctx, projectID, flagID, oldKey, newKey)
}

// Existing returns which of the ids are dashboards of the project.
func (s *Service) Existing(ctx context.Context, projectID int64, ids []int64) (map[int64]bool, error) {
	return s.store.existing(ctx, projectID, ids)
}

// List returns a page of the project's dashboards without tiles, newest
// first, and how many there are.
func (s *Service) List(ctx context.Context, project auth.Project, limit, offset int) ([]*Dashboard, int, error) {
	return s.store.list(ctx, project.ID, limit, offset)
}

// Get returns a dashboard with its tiles, also a deleted one, or NotFound.
func (s *Service) Get(ctx context.Context, project auth.Project, id int64) (*Dashboard, error) {
	return s.store.dashboard(ctx, project.ID, id)
}

// Create stores a dashboard without tiles. It fails with Forbidden unless the caller
// may edit all flags.
func (s *Service) Create(ctx context.Context, who *auth.Principal, project auth.Project, c Change) (*Dashboard, error) {
	if err := s.MayCreate(ctx, who); err != nil {
		return nil, err
	}
	now := s.now()
	d := &Dashboard{ProjectID: project.ID, DateFrom: "-30d", Tags: []string{}, CreatedBy: who.User.ID, CreatedAt: now, UpdatedAt: now}
	if c.Name != nil {
		d.Name = *c.Name
	}
	if c.Description != nil {
		d.Description = *c.Description
	}
	if c.Tags != nil {
		d.Tags = *c.Tags
	}
	return d, s.deps.Revisions.Change(ctx, project.ID, func(ctx context.Context) error { return s.store.insert(ctx, d) })
}

// MayCreate returns nil if the caller may create dashboards, Forbidden otherwise.
func (s *Service) MayCreate(ctx context.Context, who *auth.Principal) error {
	return s.deps.Access.RequireEditor(ctx, who)
}

// Change is a request to change a dashboard. Nil fields stay.
type Change struct {
	Name        *string
	Description *string
	Tags        *[]string
	Deleted     *bool
}

// MayEdit returns nil if the caller may change the dashboard: that needs the
// right to edit the flag it belongs to. It fails with NotFound and Forbidden.
func (s *Service) MayEdit(ctx context.Context, who *auth.Principal, project auth.Project, id int64) error {
	d, err := s.store.dashboard(ctx, project.ID, id)
	if err != nil {
		return err
	}
	return s.deps.Access.RequirePartEditor(ctx, who, project.ID, d.FlagID)
}

// Update changes a dashboard. Deleting it removes it from the flags that show
// it, so that needs the right to edit all flags. It fails with NotFound and
// Forbidden.
func (s *Service) Update(ctx context.Context, who *auth.Principal, project auth.Project, id int64, c Change) (*Dashboard, error) {
	var d *Dashboard
	err := s.deps.Revisions.Change(ctx, project.ID, func(ctx context.Context) (err error) {
		if d, err = s.store.dashboard(ctx, project.ID, id); err != nil {
			return err
		}
		if err := s.requireEditor(ctx, who, d, c); err != nil {
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
		if c.Deleted != nil {
			d.Deleted = *c.Deleted
		}
		d.UpdatedAt = s.now()
		if err := s.store.update(ctx, d); err != nil || !d.Deleted {
			return err
		}
		return s.deps.Flags.UnlinkDashboard(ctx, project.ID, id)
	})
	return d, err
}

func (s *Service) requireEditor(ctx context.Context, who *auth.Principal, d *Dashboard, c Change) error {
	if c.Deleted != nil && *c.Deleted {
		return s.deps.Access.RequireEditor(ctx, who)
	}
	return s.deps.Access.RequirePartEditor(ctx, who, d.ProjectID, d.FlagID)
}

// tileViews computes the tiles of a dashboard. A tile whose events cannot be
// counted has an error; the others are shown.
func (s *Service) tileViews(ctx context.Context, project auth.Project, d *Dashboard) ([]tileView, error) {
	views := make([]tileView, 0, len(d.Tiles))
	key := ""
	if d.FlagID != 0 {
		var err error
		if key, err = s.deps.Flags.KeyInEvents(ctx, project.ID, d.FlagID); err != nil {
			return nil, err
		}
	}
	sp := lastDays(s.deps.Now(), project.Location(), daysOf(d.DateFrom))
	for _, t := range d.Tiles {
		v := tileView{
			ID: t.ID, Name: t.Name, Description: t.Description, Days: sp.days, Result: []seriesView{},
			Query: queryView{TileQuery: t.Query, Value: key, DateFrom: d.DateFrom, Interval: "day"},
		}
		if err := s.fillTile(ctx, project, &v, sp); err != nil {
			s.log.Warn("dashboard tile failed", zap.Int64("dashboard_id", d.ID), zap.Int64("tile_id", t.ID), zap.Error(err))
			v.Error = "The events of this tile cannot be counted now."
		}
		views = append(views, v)
	}
	return views, nil
}

func (s *Service) fillTile(ctx context.Context, project auth.Project, v *tileView, sp span) error {
	if s.deps.Events == nil {
		return nil
	}
	q := v.Query
	lines, err := s.countLines(ctx, events.CountQuery{ProjectID: project.ID, Event: q.Event, Property: q.Property, Value: q.Value, Breakdown: q.Breakdown}, sp)
	if err != nil {
		return err
	}
	for _, l := range lines {
		series := seriesView{Label: l.Value, Breakdown: l.Value, Data: l.Events, Count: l.Total.Events}
		if q.Math == mathUnique {
			series.Data, series.Count = l.People, l.Total.People
		}
		if q.Breakdown == "" {
			series.Label = q.Event
		}
		v.Result = append(v.Result, series)
	}
	return nil
}

// daysOf returns the number of days that a dashboard shows, 30 by default.
func daysOf(dateFrom string) int {
	const usual, most = 30, 366
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(dateFrom, "-"), "d"))
	if err != nil || n < 1 {
		return usual
	}
	return min(n, most)
}

package actions

import (
	"context"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions/history"
	"github.com/guidonhq/guidon/core/actions/history/calendar"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// Series counts the stored events that match an action. history.Service implements it.
type Series interface {
	// Series returns the number of events in [from, to) for each interval. It waits
	// a limited time for missing counts.
	Series(ctx context.Context, a *history.Definition, loc *time.Location, from, to time.Time, i history.Interval) ([]history.Bucket, history.CountStatus, error)
}

// SeriesHTTP serves the series of several actions.
type SeriesHTTP struct {
	actions history.Definitions
	series  Series
	log     *zap.Logger
}

var _ web.Routes = (*SeriesHTTP)(nil)

// NewSeriesHTTP returns the route over the actions of d.
func NewSeriesHTTP(d history.Definitions, s Series, log *zap.Logger) *SeriesHTTP {
	return &SeriesHTTP{d, s, log}
}

// Routes implements web.Routes.
func (h *SeriesHTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, actionsPath+"/series", scopeRead, h.list)
}

// Limits of a request for the series of several actions.
const (
	maxSeries    = 100 // actions
	maxIntervals = 400 // of each
)

// shortSeries is the series of one of several actions.
type shortSeries struct {
	ID            int64   `json:"id"`
	Counts        []int64 `json:"counts"`
	Count         int64   `json:"count"`
	IsCalculating bool    `json:"is_calculating"`
	Error         string  `json:"error,omitempty"` // why it has no counts
}

type seriesList struct {
	Interval history.Interval `json:"interval"`
	Starts   []string         `json:"starts"`
	Results  []shortSeries    `json:"results"`
}

// list answers with the counts of several actions in the same intervals. Unknown
// actions are left out.
func (h *SeriesHTTP) list(c *web.Call) error {
	ids, err := query.IDs(c, "ids", maxSeries)
	switch {
	case err != nil:
		return err
	case len(ids) == 0:
		return fault.Field("ids", "required", "This field is required: a comma-separated list of action ids.")
	}
	interval := history.Interval(c.Query("interval", string(history.Day)))
	switch interval {
	case history.Hour, history.Day, history.Week, history.Month:
	default:
		return fault.Fieldf("interval", "invalid_choice", "%q is not a valid choice.", string(interval))
	}
	loc := c.Project.Location()
	now := time.Now().In(loc)
	from, err := calendar.ReadDate(c.Query("date_from", "-14d"), now, false)
	if err != nil {
		return fault.From(err).At("date_from")
	}
	if from.IsZero() || from.After(now) {
		return fault.Field("date_from", "invalid_input", "Must be a time in the past.")
	}
	from = from.In(loc)
	starts, err := interval.Starts(from, now)
	if err != nil {
		return err
	}
	if len(starts) > maxIntervals {
		return fault.Fieldf("date_from", "invalid_input", "The series of several actions have at most %d intervals.", maxIntervals)
	}
	view := seriesList{Interval: interval, Starts: make([]string, len(starts))}
	for i, start := range starts {
		view.Starts[i] = start.Format(time.RFC3339)
	}
	definitions, err := h.definitions(c.UserContext(), c.Project.ID, ids)
	if err != nil {
		return err
	}
	view.Results, err = h.count(c.UserContext(), definitions, loc, from, now, interval, len(starts))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, view)
}

// definitions reads the actions that exist.
func (h *SeriesHTTP) definitions(ctx context.Context, projectID int64, ids []int64) ([]history.Definition, error) {
	var out []history.Definition
	for _, id := range ids {
		d, err := h.actions.Definition(ctx, projectID, id)
		if f := fault.From(err); f != nil && f.Kind == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// count returns the series of the actions, in their order. All wait for missing
// counts at the same time, so that it takes no longer than one of them. One that
// fails has no counts; it fails only with ctx.
func (h *SeriesHTTP) count(ctx context.Context, list []history.Definition, loc *time.Location, from, to time.Time, i history.Interval, intervals int) ([]shortSeries, error) {
	out := make([]shortSeries, len(list))
	var g sync.WaitGroup
	for n := range list {
		g.Go(func() {
			one := shortSeries{ID: list[n].ID, Counts: make([]int64, intervals)}
			buckets, f, err := h.series.Series(ctx, &list[n], loc, from, to, i)
			if err != nil {
				one.Error, buckets = h.reason(ctx, &list[n], err), nil
			} else {
				one.Count, one.IsCalculating = f.Count, f.Calculating
			}
			for b := range buckets {
				one.Counts[b] = buckets[b].Count
			}
			out[n] = one
		})
	}
	g.Wait()
	return out, ctx.Err()
}

// reason returns the error text of a failed series for callers, and logs errors that are not
// meant for callers.
func (h *SeriesHTTP) reason(ctx context.Context, d *history.Definition, err error) string {
	if f := fault.From(err); f != nil && f.Kind != fault.Internal {
		return f.Detail
	}
	if ctx.Err() == nil {
		h.log.Error("action series failed", zap.Int64("project_id", d.ProjectID), zap.Int64("action_id", d.ID), zap.Error(err))
	}
	return "It could not be counted now."
}

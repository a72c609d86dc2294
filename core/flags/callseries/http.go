package callseries

import (
	"slices"
	"strconv"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// HTTP serves the series of calls.
type HTTP struct{ service *Service }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the handlers of the series.
func NewHTTP(service *Service) *HTTP { return &HTTP{service} }

const (
	flagsPath    = "/api/projects/:project_id/feature_flags"
	defaultDays  = 7
	maxDays      = 92
	maxHoursDays = 14
)

// Routes registers the endpoints.
func (h *HTTP) Routes(r *web.Router) {
	r.Manage("GET", flagsPath+"/calls", "feature_flag:read", h.list)
	r.Manage("GET", flagsPath+"/:id/calls", "feature_flag:read", h.one)
}

// seriesView is the calls of a flag.
type seriesView struct {
	ID       int64         `json:"id"`
	Key      string        `json:"key"`
	Counted  bool          `json:"counted"`
	Calls    int64         `json:"calls"`
	Variants []variantView `json:"variants"`
}

type variantView struct {
	Response string  `json:"response"`
	Calls    int64   `json:"calls"`
	Data     []int64 `json:"data"`
}

// answerView is the answer of both endpoints.
type answerView struct {
	Interval  string       `json:"interval"`
	Intervals []string     `json:"intervals"`
	Results   []seriesView `json:"results"`
}

func (h *HTTP) list(c *web.Call) error {
	sp, err := h.span(c)
	if err != nil {
		return err
	}
	ids, err := query.IDs(c, "ids", maxFlags)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	flags, err := h.service.store.flags(c.UserContext(), c.Project.ID, ids, sp.starts[0])
	if err != nil {
		return err
	}
	return h.answer(c, flags, sp)
}

func (h *HTTP) one(c *web.Call) error {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	if err != nil {
		return fault.New(fault.NotFound, "not_found", "Not found.")
	}
	sp, err := h.span(c)
	if err != nil {
		return err
	}
	flags, err := h.service.store.flags(c.UserContext(), c.Project.ID, []int64{id}, sp.starts[0])
	if err != nil {
		return err
	}
	if len(flags) == 0 {
		return fault.New(fault.NotFound, "not_found", "Not found.")
	}
	return h.answer(c, flags, sp)
}

// span reads the intervals that the query asks for.
func (h *HTTP) span(c *web.Call) (span, error) {
	hours, most := false, maxDays
	switch c.Query("interval", "day") {
	case "day":
	case "hour":
		hours, most = true, maxHoursDays
	default:
		return span{}, fault.Field("interval", "invalid_choice", "Must be hour or day.")
	}
	days, err := c.PositiveQuery("days", min(defaultDays, most))
	if err != nil {
		return span{}, err
	}
	if days > most {
		return span{}, fault.Fieldf("days", "max_value", "Ensure this value is less than or equal to %d.", most)
	}
	return newSpan(h.service.now(), c.Project.Location(), days, hours), nil
}

func (h *HTTP) answer(c *web.Call, flags []Flag, sp span) error {
	series, err := h.service.read(c.UserContext(), c.Project, flags, sp)
	if err != nil {
		return err
	}
	v := answerView{Interval: "day", Results: make([]seriesView, len(flags))}
	if sp.hours {
		v.Interval = "hour"
	}
	for _, at := range sp.starts {
		v.Intervals = append(v.Intervals, at.Format(time.RFC3339))
	}
	for i, f := range flags {
		s := series[f.Key]
		v.Results[i] = seriesView{ID: f.ID, Key: f.Key, Counted: s.Counted, Calls: s.Calls, Variants: make([]variantView, len(s.Answers))}
		for n, a := range s.Answers {
			v.Results[i].Variants[n] = variantView(a)
		}
	}
	return web.JSON(c.Ctx, v)
}

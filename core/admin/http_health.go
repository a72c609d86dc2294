package admin

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/serverhealth"
	"github.com/guidonhq/guidon/core/web"
)

// Health serves the readiness and the series of this server, for operators.
type Health struct {
	recorder *serverhealth.Recorder
	node     healthNode
	public   Public
}

var _ web.Routes = (*Health)(nil)

// healthNode identifies the server that answers.
type healthNode struct {
	ID        string    `json:"id"` // new at each start
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
}

// NewHealth returns the handlers of /api/health.
func NewHealth(r *serverhealth.Recorder, info cluster.Info, public Public) *Health {
	return &Health{r, healthNode{info.ID, info.Name, info.Version, time.Now().UTC()}, public}
}

// Routes registers the routes on the admin address, and on that of the console.
func (h *Health) Routes(g *web.Router) {
	add := func(path string, f func(c *web.Call) error) { h.public.Register(g, "GET", path, "plugin:read", f) }
	add("/api/health", func(c *web.Call) error {
		report, _ := g.Readiness(c.UserContext())
		return web.JSON(c.Ctx, map[string]any{"node": h.node, "readiness": report})
	})
	add("/api/health/series", h.series)
	add("/api/health/plugins", h.plugins)
}

// healthSeries is the answer of /api/health/series: the values of each series at from,
// from+step and so on.
type healthSeries struct {
	Node   healthNode    `json:"node"`
	From   time.Time     `json:"from"`
	Step   int64         `json:"step"` // seconds
	Series []healthPoint `json:"series"`
}

type healthPoint struct {
	serverhealth.Series

	Values points `json:"values"`
}

// points are values, of which NaN is null.
type points []float64

// MarshalJSON implements json.Marshaler. The values have the precision of float32.
func (p points) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, v := range p {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, v, 'g', -1, 32)
		}
	}
	return append(out, ']'), nil
}

// mostPoints is for how many values the step is chosen without a parameter.
const mostPoints = 300

func (h *Health) series(c *web.Call) error {
	q, err := readSeriesQuery(c, serverhealth.List())
	if err != nil {
		return err
	}
	r := h.recorder.Read(q.names(), q.from, q.to, q.step)
	return web.JSON(c.Ctx, healthSeries{Node: h.node, From: r.From, Step: int64(r.Step / time.Second), Series: q.points(r.Values)})
}

// pluginSeries is the answer of /api/health/plugins.
type pluginSeries struct {
	Node healthNode `json:"node"`
	From time.Time  `json:"from"`
	Step int64      `json:"step"` // seconds
	// LeftOut is how many instances have no series, because there are too many.
	LeftOut   int                  `json:"left_out"`
	Instances []pluginSeriesOfName `json:"instances"`
}

type pluginSeriesOfName struct {
	Name   string        `json:"name"`
	Series []healthPoint `json:"series"`
}

func (h *Health) plugins(c *web.Call) error {
	q, err := readSeriesQuery(c, serverhealth.InstanceSeries())
	if err != nil {
		return err
	}
	r := h.recorder.ReadInstances(c.Query("instance"), q.names(), q.from, q.to, q.step)
	out := pluginSeries{Node: h.node, From: r.From, Step: int64(r.Step / time.Second), LeftOut: r.LeftOut, Instances: []pluginSeriesOfName{}}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		out.Instances = append(out.Instances, pluginSeriesOfName{name, q.points(r.Values[name])})
	}
	return web.JSON(c.Ctx, out)
}

// seriesRequest is what a request for series asks for.
type seriesRequest struct {
	from, to time.Time
	step     time.Duration
	series   []serverhealth.Series
}

func readSeriesQuery(c *web.Call, all []serverhealth.Series) (q seriesRequest, err error) {
	if q.to, err = timeQuery(c, "to", time.Now()); err != nil {
		return q, err
	}
	if q.from, err = timeQuery(c, "from", q.to.Add(-time.Hour)); err != nil {
		return q, err
	}
	if q.from.After(q.to) {
		return q, fault.Field("from", "invalid_input", "The time is after `to`.")
	}
	span := min(q.to.Sub(q.from), serverhealth.CoarseSpan)
	step, err := c.PositiveQuery("step", max(1, int(span.Seconds())/mostPoints))
	if err != nil {
		return q, err
	}
	q.step = time.Duration(min(step, int(serverhealth.CoarseSpan/time.Second))) * time.Second
	q.series, err = seriesQuery(c, all)
	return q, err
}

func (q *seriesRequest) names() []string {
	out := make([]string, len(q.series))
	for i, s := range q.series {
		out[i] = s.Name
	}
	return out
}

func (q *seriesRequest) points(values [][]float64) []healthPoint {
	out := make([]healthPoint, len(q.series))
	for i, s := range q.series {
		out[i] = healthPoint{s, values[i]}
	}
	return out
}

// seriesQuery reads the names of series, separated by commas; none are all.
func seriesQuery(c *web.Call, all []serverhealth.Series) ([]serverhealth.Series, error) {
	query := c.Query("names")
	if query == "" {
		return all, nil
	}
	var out []serverhealth.Series
	for name := range strings.SplitSeq(query, ",") {
		i := slices.IndexFunc(all, func(s serverhealth.Series) bool { return s.Name == name })
		if i < 0 {
			return nil, fault.Field("names", "invalid_choice", "There is no series "+strconv.Quote(name)+".")
		}
		if len(out) == len(all) {
			return nil, fault.Field("names", "invalid_input", "Duplicate series names.")
		}
		out = append(out, all[i])
	}
	return out, nil
}

func timeQuery(c *web.Call, name string, fallback time.Time) (time.Time, error) {
	s := c.Query(name)
	if s == "" {
		return fallback, nil
	}
	if n, err := strconv.ParseInt(s, 10, 40); err == nil {
		return time.Unix(n, 0), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fault.Field(name, "invalid_input", "A time as in 2006-01-02T15:04:05Z, or seconds since 1970, is required.")
	}
	return t, nil
}

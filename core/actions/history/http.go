package history

import (
	"context"
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/actions/history/background"
	"github.com/guidonhq/guidon/core/actions/history/calendar"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// Definitions reads the definitions of actions.
type Definitions interface {
	// Definition returns the definition of an action of the project, also of a
	// deleted one, or NotFound.
	Definition(ctx context.Context, projectID, id int64) (Definition, error)
}

// HTTP serves the history of actions.
type HTTP struct {
	actions Definitions
	history *Service
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of h.
func NewHTTP(d Definitions, h *Service) *HTTP {
	return &HTTP{actions: d, history: h}
}

const historyPath = "/api/projects/:project_id/actions"

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, historyPath+"/people", "action:read", h.people)
	g.Manage(fiber.MethodGet, historyPath+"/:id/count", "action:read", h.count)
	g.Manage(fiber.MethodGet, historyPath+"/:id/series", "action:read", h.series)
}

func (h *HTTP) action(c *web.Call, id string) (Definition, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return Definition{}, fault.New(fault.NotFound, "not_found", "Not found.")
	}
	return h.actions.Definition(c.UserContext(), c.Project.ID, n)
}

// progressView is how far a calculation is.
type progressView struct {
	Done             float64  `json:"done"`
	RemainingSeconds *float64 `json:"remaining_seconds"` // null while there is no estimate
}

// viewProgress returns nil for an answer that is complete.
func viewProgress(calculating bool, p background.Progress) *progressView {
	if !calculating {
		return nil
	}
	v := &progressView{Done: math.Round(p.Done*1000) / 1000}
	if p.Done > 0 {
		rest := math.Round(p.Remaining.Seconds()*10) / 10
		v.RemainingSeconds = &rest
	}
	return v
}

// countView is the answer of count. Fields with their usual value are left
// out.
type countView struct {
	Count         int64         `json:"count"`
	IsCalculating bool          `json:"is_calculating,omitempty"`
	Progress      *progressView `json:"progress,omitempty"`
	AsOf          string        `json:"as_of,omitempty"`
	Undecided     int64         `json:"undecided,omitempty"`
	BytecodeError string        `json:"bytecode_error,omitempty"`
	// RetainedFrom is set if older events of the period are deleted by retention.
	RetainedFrom *string `json:"retained_from,omitempty"`
}

func (h *HTTP) count(c *web.Call) error {
	csv, err := c.WantsCSV()
	if err != nil {
		return err
	}
	a, err := h.action(c, c.Params("id"))
	if err != nil {
		return err
	}
	loc := c.Project.Location()
	from, to, err := countPeriod(c, time.Now().In(loc))
	if err != nil {
		return err
	}
	f, err := h.history.Count(c.UserContext(), &a, loc, from, to)
	if err != nil {
		return err
	}
	if csv {
		return c.CSV([]string{"count"}, [][]string{{strconv.FormatInt(f.Count, 10)}})
	}
	view := countView{
		Count: f.Count, IsCalculating: f.Calculating, Progress: viewProgress(f.Calculating, f.Progress),
		Undecided: f.Undecided, BytecodeError: f.Problem,
	}
	view.RetainedFrom = h.history.retainedFrom(c.Project.ID, a.Steps, from)
	if (f.Ages || f.Calculating) && !f.CalculatedAt.IsZero() {
		view.AsOf = stampMicros(f.CalculatedAt)
	}
	return web.JSON(c.Ctx, view)
}

type bucketView struct {
	Start string `json:"start"`
	Count int64  `json:"count"`
}

type seriesView struct {
	Interval         Interval      `json:"interval"`
	DateFrom         string        `json:"date_from"`
	DateTo           string        `json:"date_to"`
	Results          []bucketView  `json:"results"`
	Count            int64         `json:"count"`
	IsCalculating    bool          `json:"is_calculating"`
	Progress         *progressView `json:"progress,omitempty"`
	LastCalculatedAt *string       `json:"last_calculated_at"`
	Undecided        int64         `json:"undecided"`
	BytecodeError    *string       `json:"bytecode_error"`
	RetainedFrom     *string       `json:"retained_from,omitempty"`
}

func (h *HTTP) series(c *web.Call) error {
	csv, err := c.WantsCSV()
	if err != nil {
		return err
	}
	interval := Interval(c.Query("interval", string(Day)))
	switch interval {
	case Hour, Day, Week, Month, Year:
	default:
		return fault.Fieldf("interval", "invalid_choice", "%q is not a valid choice.", string(interval))
	}
	loc := c.Project.Location()
	from, to, err := period(c, "-7d", time.Now().In(loc))
	if err != nil {
		return err
	}
	a, err := h.action(c, c.Params("id"))
	if err != nil {
		return err
	}
	buckets, f, err := h.history.Series(c.UserContext(), &a, loc, from, to.Add(time.Microsecond), interval)
	if err != nil {
		return err
	}
	view := seriesView{
		Interval: interval, DateFrom: from.Format(time.RFC3339), DateTo: to.Format(time.RFC3339), Results: make([]bucketView, len(buckets)),
		Count: f.Count, IsCalculating: f.Calculating, Progress: viewProgress(f.Calculating, f.Progress), Undecided: f.Undecided,
	}
	rows := make([][]string, len(buckets))
	for i, b := range buckets {
		view.Results[i] = bucketView{b.Start.Format(time.RFC3339), b.Count}
		rows[i] = []string{view.Results[i].Start, strconv.FormatInt(b.Count, 10)}
	}
	if csv {
		return c.CSV([]string{"start", "count"}, rows)
	}
	view.RetainedFrom = h.history.retainedFrom(c.Project.ID, a.Steps, from)
	if !f.CalculatedAt.IsZero() {
		at := stampMicros(f.CalculatedAt)
		view.LastCalculatedAt = &at
	}
	if f.Problem != "" {
		view.BytecodeError = &f.Problem
	}
	return web.JSON(c.Ctx, view)
}

func stampMicros(t time.Time) string { return t.UTC().Format(web.TimeLayout) }

// countPeriod reads date_from and date_to of a count. The default is three months
// up to now. to is not included.
func countPeriod(c *web.Call, now time.Time) (from, to time.Time, err error) {
	if c.Query("date_from") == "" && c.Query("date_to") == "" {
		return now.AddDate(0, -3, 0), now, nil
	}
	from, to, err = period(c, "-3m", now)
	return from, to.Add(time.Microsecond), err
}

// period reads date_from and date_to. The default is the time from first, today
// included.
func period(c *web.Call, first string, now time.Time) (from, to time.Time, err error) {
	if from, err = dateParam(c, "date_from", first, now, false); err != nil {
		return from, to, err
	}
	if to, err = dateParam(c, "date_to", "now", now, true); err != nil {
		return from, to, err
	}
	if to.IsZero() {
		to = now
	}
	// Later events do not exist, except from clocks that are ahead.
	if latest := now.AddDate(0, 0, 2); to.After(latest) {
		to = latest
	}
	if to.Before(from) {
		return from, to, fault.Field("date_to", "invalid_input", "The end of the time is before its beginning.")
	}
	return from, to, nil
}

func dateParam(c *web.Call, name, other string, now time.Time, end bool) (time.Time, error) {
	text := c.Query(name)
	if text == "" {
		text = other
	}
	t, err := calendar.ReadDate(text, now, end)
	if err != nil {
		return t, fault.From(err).At(name)
	}
	return t.In(now.Location()), nil
}

// peoplePage is the number of persons per page.
const peoplePage = 100

type personView struct {
	ID          int64           `json:"id"`
	UUID        string          `json:"uuid"`
	Name        string          `json:"name"`
	DistinctIDs []string        `json:"distinct_ids"`
	Properties  json.RawMessage `json:"properties"`
	CreatedAt   string          `json:"created_at"`
}

type peopleGroup struct {
	People []personView `json:"people"`
	Count  int          `json:"count"`
}

type peopleView struct {
	Results       []peopleGroup `json:"results"`
	Next          *string       `json:"next"`
	Previous      *string       `json:"previous"`
	Undecided     int64         `json:"undecided,omitempty"`
	IsCalculating bool          `json:"is_calculating,omitempty"`
	Progress      *progressView `json:"progress,omitempty"`
	RetainedFrom  *string       `json:"retained_from,omitempty"`
}

// people answers with persons and their properties, so the key needs the scope of
// persons as well.
func (h *HTTP) people(c *web.Call) error {
	if err := c.Principal.RequireScope("person:read"); err != nil {
		return err
	}
	csv, err := c.WantsCSV()
	if err != nil {
		return err
	}
	q, err := h.peopleQuery(c)
	if err != nil {
		return err
	}
	offset := c.Page().Offset
	page, err := h.history.Persons(c.UserContext(), c.Project.ID, q, offset, peoplePage)
	if err != nil {
		return err
	}
	if csv {
		return peopleCSV(c, page.Persons)
	}
	group := peopleGroup{People: make([]personView, len(page.Persons)), Count: len(page.Persons)}
	for i, p := range page.Persons {
		group.People[i] = personView{p.ID, p.UUID, p.Name(), p.DistinctIDs, p.Properties, stampMicros(p.CreatedAt)}
	}
	view := peopleView{
		Results: []peopleGroup{group}, Undecided: page.Undecided,
		IsCalculating: page.Calculating, Progress: viewProgress(page.Calculating, page.Progress),
	}
	view.RetainedFrom = h.history.retainedFrom(c.Project.ID, q.Steps, q.From)
	if page.More {
		view.Next = offsetLink(c, offset+peoplePage)
	}
	if offset > 0 {
		view.Previous = offsetLink(c, max(0, offset-peoplePage))
	}
	return web.JSON(c.Ctx, view)
}

// errEntityMissing has the wording that clients of this protocol expect.
var errEntityMissing = fault.New(fault.Invalid, "invalid_input", "An entity id and the entity type must be provided to determine an entity")

// peopleQuery reads the query of people: the definition, the time and the
// filters.
func (h *HTTP) peopleQuery(c *web.Call) (PersonQuery, error) {
	loc := c.Project.Location()
	q := PersonQuery{Location: loc}
	id, kind := strings.Clone(c.Query("entity_id")), c.Query("entity_type")
	switch {
	case kind == "events":
		q.Steps = []actionmatch.Step{{Event: id}}
	case kind != "actions" || id == "":
		return q, errEntityMissing
	default:
		a, err := h.action(c, id)
		if err != nil {
			return q, err
		}
		q.Steps = a.Steps
	}
	now := time.Now().In(loc)
	var err error
	if q.From, err = dateParam(c, "date_from", "-7d", now, false); err != nil {
		return q, err
	}
	if c.Query("date_to") != "" {
		if q.To, err = dateParam(c, "date_to", "now", now, true); err != nil {
			return q, err
		}
		if !q.To.IsZero() && !q.From.IsZero() && q.To.Before(q.From) {
			return q, fault.Field("date_to", "invalid_input", "The end of the time is before its beginning.")
		}
		if !q.To.IsZero() {
			q.To = q.To.Add(time.Microsecond) // the last moment is included
		}
	}
	q.Filters, err = h.filters(c, loc)
	return q, err
}

// filters reads and validates the parameter properties: filters as in steps.
func (h *HTTP) filters(c *web.Call, loc *time.Location) ([]json.RawMessage, error) {
	raw := strings.Clone(c.Query("properties"))
	if raw == "" {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return nil, fault.Field("properties", "invalid_input", "Not a JSON list of property filters.")
	}
	_, err := actionmatch.Compile([]actionmatch.Step{{Properties: list}}, actionmatch.CompileOptions{Location: loc, Operators: h.history.reader.sources.Operators})
	if f := fault.From(err); f != nil {
		return nil, f.At(strings.TrimPrefix(f.Attr, "steps__0__"))
	}
	return list, err
}

// offsetLink is the URL of the request with another offset.
func offsetLink(c *web.Call, offset int) *string {
	q := url.Values{}
	for name, value := range c.Request().URI().QueryArgs().All() {
		q.Add(string(name), string(value))
	}
	q.Del("offset")
	q.Del("personal_api_key") // a secret
	if offset > 0 {
		q.Set("offset", strconv.Itoa(offset))
	}
	link := c.BaseURL() + c.Path() + "?" + q.Encode()
	return &link
}

func peopleCSV(c *web.Call, people []persons.Person) error {
	rows := make([][]string, len(people))
	for i := range people {
		p := &people[i]
		first, email := "", ""
		if len(p.DistinctIDs) > 0 {
			first = p.DistinctIDs[0]
		}
		if v, err := fastjson.ParseBytes(p.Properties); err == nil {
			email = string(v.GetStringBytes("email"))
		}
		rows[i] = []string{first, p.UUID, email, p.Name(), string(p.Properties)}
	}
	return c.CSV([]string{"Distinct ID", "Internal ID", "Email", "Name", "Properties"}, rows)
}

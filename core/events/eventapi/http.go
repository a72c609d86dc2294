// Package eventapi serves the events of a project over HTTP.
package eventapi

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/tail"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves the events of a project.
type HTTP struct {
	events *events.Service
	tail   *tail.Hub
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of s. Nil live leaves out the stream of live events.
func NewHTTP(s *events.Service, live *tail.Hub) *HTTP { return &HTTP{s, live} }

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/events", "event:read", h.list)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/events/:uuid", "event:read", h.get)
	if h.tail != nil {
		g.Manage(fiber.MethodGet, "/api/projects/:project_id/events/stream", streamScope, h.stream)
	}
	if _, ok := h.events.Status(); ok {
		g.ReadinessField("events", func() any { status, _ := h.events.Status(); return status })
	}
}

// page is a page of events. It has no total: counting a whole history to show
// its first hundred events is not worth the cost.
type page struct {
	Next    *string     `json:"next"`
	Results []eventView `json:"results"`
}

func (h *HTTP) list(c *web.Call) error {
	f, err := filterOf(c)
	if err != nil {
		return err
	}
	if f.After, err = TimeParam(c, "after"); err != nil {
		return err
	}
	if f.Before, err = TimeParam(c, "before"); err != nil {
		return err
	}
	if f.Cursor, err = cursorParam(c); err != nil {
		return err
	}
	p := c.Page()
	f.WithPersons = true
	rows, next, err := h.events.Records(c.UserContext(), c.Project.ID, f, p.Limit)
	if err != nil {
		return err
	}
	out := page{Results: viewsOf(c, rows)}
	if next != (events.Cursor{}) {
		link := nextLink(c, next)
		out.Next = &link
	}
	return web.JSON(c.Ctx, out)
}

// filterOf reads the filter of the query but for its times.
func filterOf(c *web.Call) (f events.Filter, err error) {
	f = events.Filter{Event: c.Query("event"), DistinctID: c.Query("distinct_id")}
	if f.PersonID, err = personParam(c); err != nil {
		return f, err
	}
	f.Properties, err = propertyfilter.Compile(c.Query("properties"), match.Options{Location: c.Project.Location()}, events.EventProperty, events.PersonProperty)
	return f, err
}

func (h *HTTP) get(c *web.Call) error {
	row, err := h.events.Record(c.UserContext(), c.Project.ID, c.Params("uuid"))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, viewOf(c, &row))
}

// TimeParam reads a time from the query: RFC 3339, or a date, which is its midnight in
// UTC. It returns the zero time without the parameter, and a fault of the kind Invalid
// for another text.
func TimeParam(c *web.Call, name string) (time.Time, error) {
	raw := c.Query(name)
	if raw == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		// An unescaped plus sign arrives as a space.
		for _, text := range []string{raw, strings.Replace(raw, " ", "+", 1)} {
			if t, err := time.Parse(layout, text); err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fault.Fieldf(name, "invalid_input", "Not a time: %s. Write 2026-03-01 or 2026-03-01T12:00:00Z.", raw)
}

// personParam reads the person of the query, a uuid or a number, in the form that
// is stored.
func personParam(c *web.Call) (string, error) {
	raw := strings.TrimSpace(c.Query("person_id"))
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil && n > 0 || raw == "" {
		return raw, nil
	}
	id, err := uuid.Parse(raw)
	if err != nil {
		return "", fault.Field("person_id", "invalid_input", "Not the uuid or the number of a person.")
	}
	return id.String(), nil
}

func cursorParam(c *web.Call) (events.Cursor, error) {
	return events.ParseCursor(c.Query("cursor"))
}

// nextLink is the URL of the request with another cursor.
func nextLink(c *web.Call, next events.Cursor) string {
	q := url.Values{}
	for name, value := range c.Request().URI().QueryArgs().All() {
		q.Add(string(name), string(value))
	}
	q.Del("personal_api_key") // links are copied and logged
	q.Set("cursor", next.String())
	return c.BaseURL() + c.Path() + "?" + q.Encode()
}

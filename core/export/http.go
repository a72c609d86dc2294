package export

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/eventapi"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves pages of an export.
type HTTP struct {
	events  *events.Service
	persons *persons.Service
	slots   chan struct{} // held by a page
}

var _ web.Routes = (*HTTP)(nil)

// parallel is how many pages are read at the same time; further requests wait.
const parallel = 2

// NewHTTP returns the routes.
func NewHTTP(e *events.Service, p *persons.Service) *HTTP {
	return &HTTP{e, p, make(chan struct{}, parallel)}
}

const basePath = "/api/projects/:project_id/export/"

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, basePath+"events", "event:read", h.inSlot(h.exportEvents))
	g.Manage(fiber.MethodGet, basePath+"persons", "person:read", h.inSlot(h.exportPersons))
}

// inSlot bounds the pages that are read at the same time, and their memory.
func (h *HTTP) inSlot(next func(c *web.Call) error) func(c *web.Call) error {
	return func(c *web.Call) error {
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
			return next(c)
		case <-c.UserContext().Done():
			return fault.New(fault.Unavailable, "busy", "Other exports are running.").After(2 * time.Second)
		}
	}
}

const (
	nextHeader    = "Guidon-Next-Cursor"
	throughHeader = "Guidon-Export-Through"
)

func (h *HTTP) exportEvents(c *web.Call) error {
	q := events.ExportQuery{Event: c.Query("event")}
	var err error
	if q.Since, err = eventapi.TimeParam(c, "since"); err != nil {
		return err
	}
	if q.Until, err = eventapi.TimeParam(c, "until"); err != nil {
		return err
	}
	if q.After, err = events.ParseCursor(c.Query("cursor")); err != nil {
		return err
	}
	limit, err := c.PositiveQuery("limit", maxLines)
	if err != nil {
		return err
	}
	if text := c.Query("through"); text != "" {
		if q.Through, err = strconv.ParseInt(text, 10, 64); err != nil || q.Through < 0 {
			return fault.Field("through", "invalid_input", "Send Guidon-Export-Through of the first page.")
		}
	} else if q.Through, err = h.events.Last(c.UserContext()); err != nil {
		return err
	}
	if q.Through == 0 { // an empty store
		return h.send(c, &page{}, "")
	}
	c.Set(throughHeader, strconv.FormatInt(q.Through, 10))
	p, next, err := eventPage(c.UserContext(), h.events, c.Project.ID, q, min(limit, maxLines))
	if err != nil {
		return err
	}
	return h.send(c, p, next)
}

func (h *HTTP) exportPersons(c *web.Call) error {
	after, err := parsePosition(c.Query("cursor"))
	if err != nil {
		return err
	}
	limit, err := c.PositiveQuery("limit", maxLines)
	if err != nil {
		return err
	}
	p, next, err := personPage(c.UserContext(), h.persons, c.Project.ID, after, min(limit, maxLines))
	if err != nil {
		return err
	}
	return h.send(c, p, next)
}

func (h *HTTP) send(c *web.Call, p *page, next string) error {
	if next != "" {
		c.Set(nextHeader, next)
	}
	c.Set(fiber.HeaderContentType, "application/x-ndjson")
	return c.Send(p.lines.Bytes())
}

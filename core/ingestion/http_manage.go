package ingestion

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/web"
)

// ManageHTTP lets a project see what became of the events that were not simply
// ingested: warnings and dead letters.
type ManageHTTP struct {
	store  *store
	dead   *Letters
	tracer *Tracer
	meter  *Meter
}

var _ web.Routes = (*ManageHTTP)(nil)

// NewManageHTTP returns the management routes of the room.
func NewManageHTTP(d *db.DB, l *Letters, t *Tracer) *ManageHTTP {
	return &ManageHTTP{store: &store{d}, dead: l, tracer: t}
}

// WithMeter has usage come from m.
func (h *ManageHTTP) WithMeter(m *Meter) *ManageHTTP {
	h.meter = m
	return h
}

// Routes registers the paths.
func (h *ManageHTTP) Routes(g *web.Router) {
	const read, write = "event:read", "event:write"
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/ingestion_warnings", read, h.warnings)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/ingestion_usage", read, h.usage)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/events/:uuid/trace", read, h.trace)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/dead_letters", read, h.letters)
	g.Manage(fiber.MethodPost, "/api/projects/:project_id/dead_letters/replay", write, h.replayMany)
	g.Manage(fiber.MethodPost, "/api/projects/:project_id/dead_letters/delete", write, h.discardMany)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/dead_letters/:id", read, h.letter)
	g.Manage(fiber.MethodPatch, "/api/projects/:project_id/dead_letters/:id", write, h.edit)
	g.Manage(fiber.MethodDelete, "/api/projects/:project_id/dead_letters/:id", write, h.discard)
	g.Manage(fiber.MethodPost, "/api/projects/:project_id/dead_letters/:id/replay", write, h.replayOne)
}

// warningJSON is a warning as people see it.
type warningJSON struct {
	Type      string          `json:"type"`
	Key       string          `json:"key"`
	Severity  string          `json:"severity"` // error: not ingested; warning: kept, with a change
	Count     int64           `json:"count"`
	FirstAt   time.Time       `json:"first_at"`
	LastAt    time.Time       `json:"last_at"`
	EventUUID *string         `json:"event_uuid"` // of the latest case
	Details   json.RawMessage `json:"details"`    // of the latest case
}

func (h *ManageHTTP) warnings(c *web.Call) error {
	page := c.Page()
	rows, count, err := h.store.warnings(c.UserContext(), c.Project.ID, c.Query("type"), page.Limit, page.Offset)
	if err != nil {
		return err
	}
	out := make([]warningJSON, len(rows))
	for i, r := range rows {
		out[i] = warningJSON{
			Type: r.Type, Key: r.Key, Severity: "warning", Count: r.Count, FirstAt: time.UnixMicro(r.FirstAt).UTC(),
			LastAt: time.UnixMicro(r.LastAt).UTC(), Details: json.RawMessage(r.Details),
		}
		if r.Dropped {
			out[i].Severity = "error"
		}
		if r.EventUUID != "" {
			out[i].EventUUID = &rows[i].EventUUID
		}
	}
	return c.List(page, count, out)
}

// trace tells where an event is.
func (h *ManageHTTP) trace(c *web.Call) error {
	t, err := h.tracer.Trace(c.UserContext(), c.Project.ID, c.Params("uuid"))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, t)
}

// usageJSON is what a project has sent, as people see it.
type usageJSON struct {
	Period  string     `json:"period"`
	From    *time.Time `json:"period_start"`
	To      *time.Time `json:"period_end"`
	Limit   *int64     `json:"limit"`  // null when there is none
	Events  *int64     `json:"events"` // null when nobody counts
	Refused int64      `json:"refused"`
	Limited bool       `json:"quota_limited"`
}

func (h *ManageHTTP) usage(c *web.Call) error {
	u := h.meter.Usage(c.Project.ID)
	out := usageJSON{Period: u.Period, Refused: u.Refused}
	if !u.From.IsZero() {
		out.From, out.To = &u.From, &u.To
	}
	if u.Limit > 0 {
		out.Limit, out.Events, out.Limited = &u.Limit, &u.Events, u.Events >= u.Limit
	}
	return web.JSON(c.Ctx, out)
}

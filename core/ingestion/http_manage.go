package ingestion

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// ManageHTTP lets a project see what became of the events that were not simply
// ingested: warnings and dead letters.
type ManageHTTP struct{ store *store }

var _ web.Routes = (*ManageHTTP)(nil)

// NewManageHTTP returns the management routes of the room.
func NewManageHTTP(d *db.DB) *ManageHTTP { return &ManageHTTP{&store{d}} }

// Routes registers the paths.
func (h *ManageHTTP) Routes(g *web.Gate) {
	const scope = "event:read"
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/ingestion_warnings", scope, h.warnings)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/dead_letters", scope, h.letters)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/dead_letters/:id", scope, h.letter)
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

func (h *ManageHTTP) letters(c *web.Call) error {
	f, err := letterFilter(c)
	if err != nil {
		return err
	}
	page := c.Page()
	letters, count, err := h.store.letters(c.UserContext(), c.Project.ID, f, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	return c.List(page, count, letters)
}

// letterFilter reads the filter of a list of dead letters from the query.
func letterFilter(c *web.Call) (f LetterFilter, err error) {
	f = LetterFilter{Source: c.Query("source"), Event: c.Query("event"), DistinctID: c.Query("distinct_id"), Code: c.Query("code")}
	for name, t := range map[string]*time.Time{"after": &f.After, "before": &f.Before} {
		text := c.Query(name)
		if text == "" {
			continue
		}
		at, ok := parseTime(text)
		if !ok {
			return f, fault.Field(name, "invalid_input", "Give a time, such as 2024-05-01T10:00:00Z.")
		}
		*t = at
	}
	return f, nil
}

func (h *ManageHTTP) letter(c *web.Call) error {
	id, err := c.ParamsInt("id")
	if err != nil {
		return errNoLetter
	}
	l, err := h.store.letter(c.UserContext(), c.Project.ID, int64(id))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, l)
}

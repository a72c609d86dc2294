package warning

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves the ingestion warnings of a project.
type HTTP struct{ store *Store }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the handler.
func NewHTTP(d *db.DB) *HTTP { return &HTTP{NewStore(d)} }

// Routes registers the path.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/ingestion_warnings", "event:read", h.list)
}

// warningJSON is a warning in the answer.
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

func (h *HTTP) list(c *web.Call) error {
	page := c.Page()
	rows, count, err := h.store.list(c.UserContext(), c.Project.ID, c.Query("type"), page.Limit, page.Offset)
	if err != nil {
		return err
	}
	out := make([]warningJSON, len(rows))
	for i, r := range rows {
		out[i] = warningJSON{
			Type: r.Type, Key: r.Key, Severity: "warning", Count: r.Count, FirstAt: r.FirstAt.Time,
			LastAt: r.LastAt.Time, Details: json.RawMessage(r.Details),
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

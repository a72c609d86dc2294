package capture

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web"
)

// UsageHTTP serves how many events a project has sent.
type UsageHTTP struct{ meter *Meter }

var _ web.Routes = (*UsageHTTP)(nil)

// NewUsageHTTP returns the handler.
func NewUsageHTTP(m *Meter) *UsageHTTP { return &UsageHTTP{m} }

// Routes registers the path.
func (h *UsageHTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/ingestion_usage", "event:read", h.usage)
}

// usageJSON is the usage in the answer.
type usageJSON struct {
	Period  string     `json:"period"`
	From    *time.Time `json:"period_start"`
	To      *time.Time `json:"period_end"`
	Limit   *int64     `json:"limit"`  // null without one
	Events  *int64     `json:"events"` // null without a limit
	Refused int64      `json:"refused"`
	Limited bool       `json:"quota_limited"`
}

func (h *UsageHTTP) usage(c *web.Call) error {
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

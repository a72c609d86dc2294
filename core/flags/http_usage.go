package flags

import (
	"github.com/gofiber/fiber/v2"
	"strconv"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// usageHTTP serves the usage of flags and their usage dashboards.
type usageHTTP struct{ service *Service }

func (h usageHTTP) routes(r *web.Router) {
	r.Manage("GET", flagsPath+"/:id/usage", scopeRead, h.usage)
	r.Manage("POST", flagsPath+"/:id/dashboard", scopeWrite, h.createUsageDashboard)
	r.Manage("POST", flagsPath+"/:id/enrich_usage_dashboard", scopeWrite, h.enrichUsageDashboard)
}

// success is the answer of the two dashboard endpoints of a flag.
type success struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

func (h usageHTTP) createUsageDashboard(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	_, err = h.service.CreateUsageDashboard(c.UserContext(), c.Principal, c.Project, id)
	return answerSuccess(c, err)
}

func (h usageHTTP) enrichUsageDashboard(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	return answerSuccess(c, h.service.EnrichUsageDashboard(c.UserContext(), c.Principal, c.Project, id))
}

// answerSuccess answers Invalid faults in the form of the dashboard endpoints.
func answerSuccess(c *web.Call, err error) error {
	switch {
	case err == nil:
		return web.JSON(c.Ctx, success{Success: true})
	case !fault.Is(err, fault.Invalid):
		return err
	}
	c.Status(fiber.StatusBadRequest)
	return web.JSON(c.Ctx, success{Error: fault.From(err).Detail})
}

// usageView is the number of calls of a flag by response and day.
type usageView struct {
	LastCalled web.Time      `json:"last_called_at"`
	Calls      int64         `json:"calls"`
	Days       []string      `json:"days"`
	Variants   []variantView `json:"variants"`
}

// variantView is the calls with one response.
type variantView struct {
	Response string  `json:"response"`
	Calls    int64   `json:"calls"`
	People   int64   `json:"people"`
	Daily    []int64 `json:"daily"`
}

// usage answers with the calls of a flag over the last days, 30 by default.
func (h usageHTTP) usage(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	days, err := c.PositiveQuery("days", 30)
	if err != nil {
		return err
	}
	if days > 366 {
		return fault.Field("days", "max_value", "Ensure this value is less than or equal to "+strconv.Itoa(366)+".")
	}
	f, report, err := h.service.FlagUsage(c.UserContext(), c.Project, id, days)
	if err != nil {
		return err
	}
	v := usageView{LastCalled: web.Time(f.LastCalled), Days: report.Days, Variants: []variantView{}}
	for _, l := range report.Lines {
		v.Calls += l.Total.Events
		v.Variants = append(v.Variants, variantView{Response: l.Value, Calls: l.Total.Events, People: l.Total.People, Daily: l.Events})
	}
	return web.JSON(c.Ctx, v)
}

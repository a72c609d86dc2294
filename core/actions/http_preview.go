package actions

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web"
)

// PreviewHTTP serves previews of unsaved definitions.
type PreviewHTTP struct{ previews *Previews }

var _ web.Routes = (*PreviewHTTP)(nil)

// NewPreviewHTTP returns the route of p.
func NewPreviewHTTP(p *Previews) *PreviewHTTP { return &PreviewHTTP{p} }

// Routes implements web.Routes.
func (h *PreviewHTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodPost, "/api/projects/:project_id/actions/preview", "action:read", h.preview)
}

// preview answers with stored events, so the key needs the scope of events as
// well. Properties of persons and groups are hidden without their scopes.
func (h *PreviewHTTP) preview(c *web.Call) error {
	if err := c.Principal.RequireScope("event:read"); err != nil {
		return err
	}
	f, err := c.Fields()
	if err != nil {
		return err
	}
	steps := ReadSteps(f, web.Required)
	q := PreviewQuery{
		Event:      f.String("event", web.Nullable, web.Blank, web.Untrimmed).Value,
		DistinctID: f.String("distinct_id", web.Nullable, web.Blank, web.Untrimmed).Value,
		Limit:      int(f.Int("limit", web.Nullable, web.Min(1), web.Max(previewMax)).Or(previewDefault)),
	}
	if err := f.Err(); err != nil {
		return err
	}
	if q.Location, err = time.LoadLocation(c.Project.Timezone); err != nil {
		q.Location = time.UTC
	}
	out, err := h.previews.Preview(c.UserContext(), c.Project.ID, steps.Value, q)
	if err != nil {
		return err
	}
	persons, groups := c.Principal.HasScope("person:read"), c.Principal.HasScope("group:read")
	for i := range out.Results {
		out.Results[i].HideStored(!persons, !groups)
	}
	return web.JSON(c.Ctx, out)
}

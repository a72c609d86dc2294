package listing

import (
	"context"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/web"
)

// Sets compiles the flags of a project, if they have changed.
type Sets interface {
	Set(projectID int64) *eval.Set
}

// Source has the definitions of which a set was compiled, or newer ones, and reads
// those of a project without them.
type Source interface {
	Kept(projectID int64) (eval.ProjectDefinitions, bool)
	Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error)
}

// HTTP serves the lists.
type HTTP struct {
	sets   Sets
	source Source
	router *web.Router
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints over the definitions of sets.
func NewHTTP(sets Sets, source Source) *HTTP { return &HTTP{sets: sets, source: source} }

func (h *HTTP) definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error) {
	h.sets.Set(projectID)
	if d, ok := h.source.Kept(projectID); ok {
		return d, nil
	}
	return h.source.Definitions(ctx, projectID)
}

// Routes registers the endpoints.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	g.ManageFromMemory(fiber.MethodGet, "/api/feature_flag", "feature_flag:read", h.flags)
	g.Public(fiber.MethodGet, "/api/early_access_features", h.features)
}

// flags answers with the active flags of the project on one page.
func (h *HTTP) flags(c *web.Call) error {
	project, err := c.CurrentProject()
	if err != nil {
		return err
	}
	d, err := h.definitions(c.UserContext(), project.ID)
	if err != nil {
		return err
	}
	all := activeFlags(d)
	return web.JSON(c.Ctx, struct {
		Count    int        `json:"count"`
		Next     *string    `json:"next"`
		Previous *string    `json:"previous"`
		Results  []flagView `json:"results"`
	}{Count: len(all), Results: all})
}

// features answers with the early access features of a project, of the stages that
// the query names.
func (h *HTTP) features(c *fiber.Ctx) error {
	token := strings.Clone(c.Query("token"))
	project, err := h.router.ProjectOf(c, token, c.Query("project_id"))
	if err != nil {
		return err
	}
	d, err := h.definitions(c.UserContext(), project.ID)
	if err != nil {
		return err
	}
	all := features(d)
	if stages := c.Request().URI().QueryArgs().PeekMulti("stage"); len(stages) > 0 &&
		!slices.ContainsFunc(stages, func(s []byte) bool { return string(s) == stageBeta }) {
		all = []featureView{}
	}
	return web.JSON(c, struct {
		Features []featureView `json:"earlyAccessFeatures"`
	}{all})
}

package ai

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/web"
)

// Keeper appends events to the journal; capture.HTTP is one.
type Keeper interface {
	Keep(c *fiber.Ctx, project auth.Project, b capture.Batch) error
}

// HTTP serves /i/v0/ai.
type HTTP struct {
	keeper     Keeper
	eventBytes int
	router     *web.Router
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoint. An event of more than eventBytes bytes is truncated.
func NewHTTP(k Keeper, eventBytes int) *HTTP { return &HTTP{keeper: k, eventBytes: eventBytes} }

// Routes registers the path.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	g.Public(fiber.MethodPost, "/i/v0/ai", h.capture)
}

// answer is the answer to an accepted event.
type answer struct {
	Status    int      `json:"status"`
	Accepted  []part   `json:"accepted_parts"`
	Truncated []string `json:"truncated_properties,omitempty"`
	Limited   []string `json:"quota_limited,omitempty"`
}

func (h *HTTP) capture(c *fiber.Ctx) error {
	token := bearer(c)
	if token == "" {
		return fault.New(fault.Unauthenticated, "invalid_api_key", "API key not provided. Send the key of your project as bearer token.")
	}
	project, err := h.router.ProjectOf(c, token, c.Query("project_id"))
	if err != nil {
		return err
	}
	boundary := string(c.Request().Header.MultipartFormBoundary())
	if boundary == "" {
		return fault.New(fault.Unsupported, "unsupported_media_type", "The Content-Type must be multipart/form-data with a boundary.")
	}
	limits := h.router.Limits()
	raw, err := web.Plain(c, limits)
	if err != nil {
		return err
	}
	if err := web.Memory(c).StartProcessing(); err != nil {
		return err
	}
	// The parts, their values as JSON, and the event twice while it is built.
	if err := web.Memory(c).Take(4 * len(raw)); err != nil {
		return err
	}
	e, err := readForm(raw, boundary, h.eventBytes)
	if err != nil {
		return err
	}
	text, cut, err := e.build()
	if err != nil {
		return err
	}
	items := append(append([]byte{'['}, text...), ']')
	web.Memory(c).EndProcessing()
	out := answer{Status: 1, Accepted: e.parts, Truncated: cut}
	err = h.keeper.Keep(c, project, capture.Batch{Items: items, Count: 1, ClientIP: true})
	if capture.IsOverQuota(err) {
		out.Limited, err = []string{"events"}, nil
	}
	if err != nil {
		return err
	}
	return web.JSON(c, out)
}

// bearer returns the key of the Authorization header or of the query, or "".
func bearer(c *fiber.Ctx) string {
	scheme, token, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) != "" {
		return strings.TrimSpace(token)
	}
	return c.Query("token")
}

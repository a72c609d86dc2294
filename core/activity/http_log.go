package activity

import (
	"context"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves the log.
type HTTP struct{ log *Log }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of a log.
func NewHTTP(l *Log) *HTTP { return &HTTP{l} }

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/activity_log", "activity_log:read", h.ofProject)
	g.Manage(fiber.MethodGet, "/api/organizations/:organization_id/activity_log", "activity_log:read", h.ofOrganization)
}

// logView is an entry in the answers of HTTP: with the origin of the change.
type logView struct {
	entryView
	UserID         *int64 `json:"user_id"`
	ProjectID      *int64 `json:"project_id"`
	OrganizationID string `json:"organization_id"`
	KeyID          *int64 `json:"personal_api_key_id"`
	Client         string `json:"client_address"`
}

func showEntry(e *Entry) logView {
	return logView{
		entryView: viewOf(e), UserID: positive(e.UserID), ProjectID: positive(e.ProjectID), OrganizationID: e.OrganizationID,
		KeyID: positive(e.KeyID), Client: e.Client,
	}
}

func positive(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func (h *HTTP) ofProject(c *web.Call) error { return h.answer(c, Query{ProjectID: c.Project.ID}) }

// ofOrganization answers admins of the organization. It covers all projects, so a
// key that is restricted to some does not read it.
func (h *HTTP) ofOrganization(c *web.Call) error {
	id := c.Params("organization_id")
	if id != auth.Current && !strings.EqualFold(id, c.Principal.OrganizationID) {
		return fault.New(fault.NotFound, "not_found", "Not found.")
	}
	if c.Principal.OrgLevel < auth.LevelAdmin || c.Principal.IsRestricted() {
		return fault.New(fault.Forbidden, "permission_denied", "Only admins read the activity log of an organization, with a key for all projects.")
	}
	return h.answer(c, Query{OrganizationID: c.Principal.OrganizationID})
}

func (h *HTTP) answer(c *web.Call, q Query) error {
	q.Scope, q.ItemID = Scope(c.Query("scope")), c.Query("item_id")
	if user := c.Query("user"); user != "" {
		id, err := strconv.ParseInt(user, 10, 64)
		if err != nil || id < 1 {
			return fault.Field("user", "invalid_input", "A valid integer is required.")
		}
		q.UserID = id
	}
	return answer(c, func(ctx context.Context, limit, offset int) ([]Entry, int, error) {
		q.Limit, q.Offset = limit, offset
		return h.log.Find(ctx, q)
	}, showEntry)
}

package invitation

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/admins"
	"github.com/guidonhq/guidon/core/web/query"
)

// HTTP serves invitations.
type HTTP struct {
	service *Service
	console bool
	router  *web.Router
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of s.
// With console, invitations have a link to it.
func NewHTTP(s *Service, console bool) *HTTP { return &HTTP{service: s, console: console} }

const invitesPath = "/api/organizations/:organization_id/invites"

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	g.Manage(fiber.MethodGet, invitesPath, "organization:read", ofAdmins(h.list))
	g.Manage(fiber.MethodPost, invitesPath, "organization:write", ofAdmins(h.create))
	g.Manage(fiber.MethodDelete, invitesPath+"/:invite_id", "organization:write", ofAdmins(h.remove))
	g.Public(fiber.MethodPost, "/api/signup/:invite_id", h.accept)
}

// ofAdmins accepts admins of the organization with a key for all of its projects.
func ofAdmins(next func(*web.Call) error) func(*web.Call) error {
	return admins.Require("Only admins and owners of the organization invite, with a key for all projects.", next)
}

// view is the JSON form of an invitation. Token and the URLs are in the answer to its
// creation only.
type view struct {
	ID          string     `json:"id"`
	TargetEmail string     `json:"target_email"`
	FirstName   string     `json:"first_name"`
	Level       int        `json:"level"`
	IsExpired   bool       `json:"is_expired"`
	Emailed     bool       `json:"emailing_attempt_made"`
	EmailState  string     `json:"email_state"`
	CreatedBy   *auth.User `json:"created_by"`
	CreatedAt   web.Time   `json:"created_at"`
	UpdatedAt   web.Time   `json:"updated_at"`
	ExpiresAt   web.Time   `json:"expires_at"`
	Message     *string    `json:"message"`
	Token       string     `json:"token,omitempty"`
	AcceptURL   string     `json:"accept_url,omitempty"`
	ConsoleURL  string     `json:"console_url,omitempty"`
}

func show(i Invitation, users map[int64]auth.User, now time.Time) view {
	v := view{
		ID: i.ID, TargetEmail: i.Email, FirstName: i.FirstName, Level: i.Level, IsExpired: i.Expired(now),
		CreatedAt: web.Time(i.CreatedAt), UpdatedAt: web.Time(i.CreatedAt), ExpiresAt: web.Time(i.ExpiresAt),
		EmailState: i.EmailState, Emailed: i.EmailState == EmailSent || i.EmailState == EmailFailed,
	}
	if u, ok := users[i.CreatedBy]; ok {
		v.CreatedBy = &u
	}
	return v
}

func (h *HTTP) list(c *web.Call) error {
	ctx := c.UserContext()
	all, err := h.service.List(ctx, c.Principal.OrganizationID)
	if err != nil {
		return err
	}
	page := c.Page()
	part := query.Cut(all, page.Limit, page.Offset)
	users, err := h.makers(ctx, part)
	if err != nil {
		return err
	}
	views := make([]view, len(part))
	for n, i := range part {
		views[n] = show(i, users, h.service.now())
	}
	return c.List(page, len(all), views)
}

func (h *HTTP) makers(ctx context.Context, all []Invitation) (map[int64]auth.User, error) {
	var ids []int64
	for _, i := range all {
		ids = append(ids, i.CreatedBy)
	}
	return h.service.users.UsersByID(ctx, ids)
}

func (h *HTTP) create(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	in := New{
		Email: body.String("target_email", web.Required).Value, FirstName: body.String("first_name").Value, Level: int(body.Int("level").Value),
	}
	if err := body.Err(); err != nil {
		return err
	}
	i, token, err := h.service.Create(c.UserContext(), c.Principal, in)
	if err != nil {
		return err
	}
	users, err := h.makers(c.UserContext(), []Invitation{i})
	if err != nil {
		return err
	}
	v := show(i, users, h.service.now())
	v.Token, v.AcceptURL = token, c.BaseURL()+"/api/signup/"+i.ID+"/"
	if at, err := url.Parse(c.ConsoleURL()); err == nil && h.console { // which is never below a path
		v.ConsoleURL = at.Scheme + "://" + at.Host + consolePage(i.ID, token)
	}
	c.Status(fiber.StatusCreated)
	return web.JSON(c.Ctx, v)
}

func (h *HTTP) remove(c *web.Call) error {
	if err := h.service.Delete(c.UserContext(), c.Principal, c.Params("invite_id")); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// acceptedView is the answer to an accepted invitation.
type acceptedView struct {
	auth.User
	OrganizationID string `json:"organization_id"`
	Level          int    `json:"level"`
	PersonalKey    string `json:"personal_api_key"`
}

// maxAccept bounds the body of a request that accepts.
const maxAccept = 16 << 10

func (h *HTTP) accept(c *fiber.Ctx) error {
	text, err := web.Plain(c, web.Limits{InflatedBytes: maxAccept, Depth: 8})
	if err != nil {
		return err
	}
	var in struct {
		Token     string `json:"token"`
		FirstName string `json:"first_name"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return fault.New(fault.Invalid, "parse_error", "The body must be a JSON object with token and first_name.")
	}
	out, err := h.service.Accept(h.router.WithOrigin(c.UserContext(), c), web.Param(c, "invite_id"), in.Token, in.FirstName)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Status(fiber.StatusCreated)
	return web.JSON(c, acceptedView{out.User, out.OrganizationID, out.Level, out.Key})
}

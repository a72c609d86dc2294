package signin

import (
	"context"
	"slices"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/admins"
	"github.com/guidonhq/guidon/core/web/browser"
	"github.com/guidonhq/guidon/core/web/query"
)

const (
	ownSessionsPath = "/api/users/@me/sessions"
	allSessionsPath = "/api/organizations/:organization_id/sessions"
)

func (h *HTTP) sessionRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, ownSessionsPath, "user:read", h.listOwn)
	g.Manage(fiber.MethodDelete, ownSessionsPath, "user:write", h.revokeOwn)
	g.Manage(fiber.MethodDelete, ownSessionsPath+"/:session_id", "user:write", h.revokeOwnOne)
	g.Manage(fiber.MethodGet, allSessionsPath, "organization:read", ofAdmins(h.listAll))
	g.Manage(fiber.MethodDelete, allSessionsPath+"/:session_id", "organization:write", ofAdmins(h.revokeOne))
}

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// ofAdmins accepts admins of the organization with a key for all of its projects.
func ofAdmins(next func(*web.Call) error) func(*web.Call) error {
	return admins.Require("Only admins and owners of the organization see its sessions, with a key for all projects.", next)
}

type sessionView struct {
	ID         int64      `json:"id"`
	Method     string     `json:"method"`
	CreatedAt  web.Time   `json:"created_at"`
	LastSeenAt web.Time   `json:"last_seen_at"`
	ExpiresAt  web.Time   `json:"expires_at"`
	UserAgent  string     `json:"user_agent"`
	Client     string     `json:"client"`
	Current    bool       `json:"current"`
	User       *auth.User `json:"user,omitempty"`
}

func showSession(s sessions.Session, who *auth.Principal) sessionView {
	return sessionView{
		ID: s.ID, Method: s.Method, CreatedAt: web.Time(s.CreatedAt), LastSeenAt: web.Time(s.LastSeenAt), ExpiresAt: web.Time(s.ExpiresAt),
		UserAgent: s.UserAgent, Client: s.Client, Current: s.ID == who.SessionID,
	}
}

// sessionAnswer is the answer to a sign-in and to GET of the session. Session is null for a
// personal key.
type sessionAnswer struct {
	CSRFToken     string       `json:"csrf_token"`
	Session       *sessionView `json:"session"`
	User          auth.User    `json:"user"`
	IsOperator    bool         `json:"is_operator"`
	HasPassword   bool         `json:"has_password"`
	Organization  membership   `json:"organization"`
	Level         int          `json:"level"`
	Organizations []membership `json:"organizations"`
	ProjectID     int64        `json:"project_id"`
}

func (h *HTTP) show(ctx context.Context, who *auth.Principal, s *sessions.Session, token string) (sessionAnswer, error) {
	v := sessionAnswer{User: who.User, IsOperator: who.IsOperator(), Level: who.OrgLevel, ProjectID: who.CurrentProjectID}
	if s != nil {
		shown := showSession(*s, who)
		v.Session, v.CSRFToken = &shown, browser.CSRFToken(token)
	}
	a, err := h.service.store.byID(ctx, who.User.ID)
	if err != nil {
		return v, db.Away(err)
	}
	v.HasPassword = a.Hash != ""
	all, err := h.service.store.memberships(ctx, who.User.ID)
	if err != nil {
		return v, db.Away(err)
	}
	here := func(m membership) bool { return m.ID == who.OrganizationID }
	if i := slices.IndexFunc(all, here); i >= 0 {
		v.Organization = all[i]
	}
	v.Organizations = all
	if s == nil { // a key is for one organization
		v.Organizations = slices.DeleteFunc(all, func(m membership) bool { return !here(m) })
	}
	if project, err := h.service.accounts.ProjectFor(ctx, who, auth.Current); err == nil {
		v.ProjectID = project.ID
	}
	return v, nil
}

func (h *HTTP) listOwn(c *web.Call) error {
	all, err := h.service.sessions.OfUser(c.UserContext(), c.Principal.User.ID)
	if err != nil {
		return err
	}
	return list(c, all, nil)
}

// list answers with a page of sessions, with their users unless users is nil.
func list(c *web.Call, all []sessions.Session, users map[int64]auth.User) error {
	page := c.Page()
	views := []sessionView{}
	for _, s := range query.Cut(all, page.Limit, page.Offset) {
		v := showSession(s, c.Principal)
		if u, ok := users[s.UserID]; ok {
			v.User = &u
		}
		views = append(views, v)
	}
	return c.List(page, len(all), views)
}

func (h *HTTP) listAll(c *web.Call) error {
	ctx := c.UserContext()
	all, err := h.service.sessions.OfOrganization(ctx, c.Principal.OrganizationID)
	if err != nil {
		return err
	}
	ids := make([]int64, len(all))
	for i, s := range all {
		ids[i] = s.UserID
	}
	users, err := h.service.accounts.UsersByID(ctx, ids)
	if err != nil {
		return err
	}
	return list(c, all, users)
}

// revokeOwn ends the sessions of the user but that of the request.
func (h *HTTP) revokeOwn(c *web.Call) error {
	who := c.Principal
	err := h.service.audit.Change(c.UserContext(), who, func(ctx context.Context) (*activity.Event, error) {
		n, err := h.service.sessions.RevokeAll(ctx, who.User.ID, who.SessionID)
		e := sessionEvent(0, "revoked", "all sessions")
		e.After = struct {
			Sessions int64 `json:"sessions"`
		}{n}
		return e, err
	})
	if err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

func (h *HTTP) revokeOwnOne(c *web.Call) error { return h.revoke(c, c.Principal.User.ID, "") }

// revokeOne ends a session of a member, up to the own level.
func (h *HTTP) revokeOne(c *web.Call) error {
	ctx := c.UserContext()
	all, err := h.service.sessions.OfOrganization(ctx, c.Principal.OrganizationID)
	if err != nil {
		return err
	}
	id := sessionID(c)
	i := slices.IndexFunc(all, func(s sessions.Session) bool { return s.ID == id })
	if i < 0 {
		return errNotFound
	}
	members, err := h.service.accounts.Members(ctx, c.Principal.OrganizationID)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.User.ID != all[i].UserID {
			continue
		}
		if m.Level > c.Principal.OrgLevel {
			return fault.New(fault.Forbidden, "permission_denied", "You can only end sessions of members up to your own level.")
		}
		return h.revoke(c, m.User.ID, m.User.Email)
	}
	return errNotFound
}

func (h *HTTP) revoke(c *web.Call, userID int64, name string) error {
	id := sessionID(c)
	err := h.service.audit.Change(c.UserContext(), c.Principal, func(ctx context.Context) (*activity.Event, error) {
		return sessionEvent(id, "revoked", name), h.service.sessions.Revoke(ctx, userID, id)
	})
	if err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// sessionID returns the id in the path, 0 for an invalid one.
func sessionID(c *web.Call) int64 {
	id, _ := strconv.ParseInt(c.Params("session_id"), 10, 64)
	return id
}

package flags

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

const accessPath = flagsPath + "/:parent_lookup_feature_flag_id/role_access"

// accessHTTP serves role access.
type accessHTTP struct{ service *Service }

func (h accessHTTP) routes(g *web.Router) {
	g.Manage("GET", accessPath, scopeRead, h.listAccess)
	g.Manage("POST", accessPath, scopeWrite, h.giveAccess)
	g.Manage("GET", accessPath+"/:id", scopeRead, h.retrieveAccess)
	g.Manage("DELETE", accessPath+"/:id", scopeWrite, h.removeAccess)
}

// accessView is the JSON form of a role access.
type accessView struct {
	ID          int64     `json:"id"`
	FeatureFlag View      `json:"feature_flag"`
	Role        *roleView `json:"role"`
	AddedAt     web.Time  `json:"added_at"`
	UpdatedAt   web.Time  `json:"updated_at"`
}

// roleView is the JSON form of a role. The contract encodes members and flags as
// JSON lists in strings.
type roleView struct {
	ID              string     `json:"id"`
	Name            string     `json:"name"`
	Level           int        `json:"feature_flags_access_level"`
	CreatedAt       web.Time   `json:"created_at"`
	CreatedBy       *auth.User `json:"created_by"`
	Members         string     `json:"members"`
	AssociatedFlags string     `json:"associated_flags"`
}

func (h accessHTTP) listAccess(c *web.Call) error {
	flagID, err := parentOf(c)
	if err != nil {
		return err
	}
	f, list, err := h.service.RoleAccesses(c.UserContext(), c.Principal, c.Project, flagID)
	if err != nil {
		return err
	}
	page := c.Page()
	views, err := h.showAccess(c, f, query.Cut(list, page.Limit, page.Offset)...)
	if err != nil {
		return err
	}
	return c.List(page, len(list), views)
}

func (h accessHTTP) giveAccess(c *web.Call) error {
	flagID, err := parentOf(c)
	if err != nil {
		return err
	}
	if err := h.service.MayGiveAccess(c.UserContext(), c.Principal, c.Project, flagID); err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	role := body.UUID("role_id", web.Required)
	if err := body.Err(); err != nil {
		return err
	}
	f, a, err := h.service.GiveAccess(c.UserContext(), c.Principal, c.Project, flagID, role.Value)
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return h.answerAccess(c, f, a)
}

func (h accessHTTP) retrieveAccess(c *web.Call) error {
	flagID, err := parentOf(c)
	if err != nil {
		return err
	}
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	f, a, err := h.service.RoleAccess(c.UserContext(), c.Principal, c.Project, flagID, id)
	if err != nil {
		return err
	}
	return h.answerAccess(c, f, a)
}

func (h accessHTTP) removeAccess(c *web.Call) error {
	flagID, err := parentOf(c)
	if err != nil {
		return err
	}
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	if err := h.service.RemoveAccess(c.UserContext(), c.Principal, c.Project, flagID, id); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// parentOf reads the id of the flag from the path.
func parentOf(c *web.Call) (int64, error) {
	id, err := idOf(c, "parent_lookup_feature_flag_id")
	if err != nil {
		return 0, errNoParent
	}
	return id, nil
}

func (h accessHTTP) answerAccess(c *web.Call, f *Flag, a RoleAccess) error {
	views, err := h.showAccess(c, f, a)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, views[0])
}

func (h accessHTTP) showAccess(c *web.Call, f *Flag, list ...RoleAccess) ([]accessView, error) {
	flag, err := h.service.Show(c.UserContext(), c.Principal, f)
	if err != nil {
		return nil, err
	}
	roles, given, err := h.service.rolesOf(c.UserContext(), c.Project, list)
	if err != nil {
		return nil, err
	}
	views := make([]accessView, 0, len(list))
	for _, a := range list {
		v := accessView{ID: a.ID, FeatureFlag: flag[0], AddedAt: web.Time(a.AddedAt), UpdatedAt: web.Time(a.UpdatedAt)}
		if r, ok := roles[a.RoleID]; ok {
			v.Role = showRole(r, given[a.RoleID])
		}
		views = append(views, v)
	}
	return views, nil
}

func showRole(r auth.Role, given []auth.RoleFlag) *roleView {
	type member struct {
		ID        string    `json:"id"`
		RoleID    string    `json:"role_id"`
		User      auth.User `json:"user"`
		JoinedAt  web.Time  `json:"joined_at"`
		UpdatedAt web.Time  `json:"updated_at"`
	}
	members := make([]member, 0, len(r.Members))
	for _, m := range r.Members {
		members = append(members, member{m.ID, m.RoleID, m.User, web.Time(m.JoinedAt), web.Time(m.UpdatedAt)})
	}
	if given == nil {
		given = []auth.RoleFlag{}
	}
	return &roleView{
		ID: r.ID, Name: r.Name, Level: r.FlagsAccessLevel, CreatedAt: web.Time(r.CreatedAt), CreatedBy: r.CreatedBy,
		Members: string(document.Encode(members)), AssociatedFlags: string(document.Encode(given)),
	}
}

package accounts

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

const (
	rolesPath = organizationPath + "/roles"
	rolePath  = rolesPath + "/:role_id"
)

func (h *HTTP) roleRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, rolesPath, "role:read", ours(h.listRoles))
	g.Manage(fiber.MethodPost, rolesPath, "role:write", ours(admins(h.createRole)))
	g.Manage(fiber.MethodGet, rolePath, "role:read", ours(h.readRole))
	g.Manage(fiber.MethodPatch, rolePath, "role:write", ours(admins(h.changeRole)))
	g.Manage(fiber.MethodDelete, rolePath, "role:write", ours(admins(h.deleteRole)))
	g.Manage(fiber.MethodGet, rolePath+"/role_memberships", "role:read", ours(h.listRoleMembers))
	g.Manage(fiber.MethodPost, rolePath+"/role_memberships", "role:write", ours(admins(h.addRoleMember)))
	g.Manage(fiber.MethodDelete, rolePath+"/role_memberships/:id", "role:write", ours(admins(h.removeRoleMember)))
}

// roleView is the JSON form of a role, the same as where a flag says which
// roles were given it: what belongs to the role is JSON in texts.
type roleView struct {
	ID              string     `json:"id"`
	Name            string     `json:"name"`
	Level           int        `json:"feature_flags_access_level"`
	CreatedAt       stamp      `json:"created_at"`
	CreatedBy       *auth.User `json:"created_by"`
	Members         string     `json:"members"`
	AssociatedFlags string     `json:"associated_flags"`
}

func showRole(r auth.Role, flags []Flag) (roleView, error) {
	members := []roleMemberView{}
	for _, m := range r.Members {
		members = append(members, showRoleMember(m))
	}
	if flags == nil {
		flags = []Flag{}
	}
	v := roleView{ID: r.ID, Name: r.Name, Level: r.FlagsAccessLevel, CreatedAt: stamp(r.CreatedAt), CreatedBy: r.CreatedBy}
	var err error
	if v.Members, err = inText(members); err != nil {
		return v, err
	}
	v.AssociatedFlags, err = inText(flags)
	return v, err
}

func (h *HTTP) listRoles(c *web.Call) error {
	all, err := h.auth.Roles(c.UserContext(), c.Principal.OrganizationID)
	if err != nil {
		return err
	}
	page := c.Page()
	views, err := h.showRoles(c.UserContext(), c.Principal, cut(page, all)...)
	if err != nil {
		return err
	}
	return c.List(page, len(all), views)
}

// showRoles shows roles with the flags they were given, as far as the key may
// see their projects.
func (h *HTTP) showRoles(ctx context.Context, who *auth.Principal, roles ...auth.Role) ([]roleView, error) {
	flags, err := h.flagsOf(ctx, who, roles)
	if err != nil {
		return nil, err
	}
	views := make([]roleView, len(roles))
	for i, r := range roles {
		if views[i], err = showRole(r, flags[r.ID]); err != nil {
			return nil, err
		}
	}
	return views, nil
}

func (h *HTTP) flagsOf(ctx context.Context, who *auth.Principal, roles []auth.Role) (map[string][]Flag, error) {
	if h.flags == nil || len(roles) == 0 {
		return nil, nil
	}
	projects, err := h.auth.Projects(ctx, who.OrganizationID)
	if err != nil {
		return nil, err
	}
	var projectIDs []int64
	for _, p := range visible(who, projects) {
		projectIDs = append(projectIDs, p.ID)
	}
	roleIDs := make([]string, len(roles))
	for i, r := range roles {
		roleIDs[i] = r.ID
	}
	return h.flags.FlagsOfRoles(ctx, projectIDs, roleIDs)
}

func (h *HTTP) answerRole(c *web.Call, r auth.Role, status int) error {
	views, err := h.showRoles(c.UserContext(), c.Principal, r)
	if err != nil {
		return err
	}
	c.Status(status)
	return web.JSON(c.Ctx, views[0])
}

func (h *HTTP) createRole(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	name, level := body.String("name", web.Required), roleLevel(body)
	if err := body.Err(); err != nil {
		return err
	}
	in := auth.NewRole{OrganizationID: c.Principal.OrganizationID, Name: name.Value, CreatedBy: c.Principal.User.ID}
	if level != nil {
		in.FlagsAccessLevel = *level
	}
	r, err := h.auth.CreateRole(c.UserContext(), in)
	if err != nil {
		return err
	}
	return h.answerRole(c, r, fiber.StatusCreated)
}

// roleLevel reads the level of a role; to the room behind, 0 means that there
// is none.
func roleLevel(body *web.Fields) *int {
	level := number(body.Int("feature_flags_access_level"))
	if level != nil && *level == 0 {
		body.Fail("feature_flags_access_level", "invalid_choice", "The level must be 21 (can view) or 37 (can edit).")
	}
	return level
}

func (h *HTTP) readRole(c *web.Call) error {
	r, err := h.auth.Role(c.UserContext(), c.Principal.OrganizationID, c.Params("role_id"))
	if err != nil {
		return err
	}
	return h.answerRole(c, r, fiber.StatusOK)
}

func (h *HTTP) changeRole(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	change := auth.RoleChange{Name: given(body.String("name")), FlagsAccessLevel: roleLevel(body)}
	if err := body.Err(); err != nil {
		return err
	}
	r, err := h.auth.UpdateRole(c.UserContext(), c.Principal.OrganizationID, c.Params("role_id"), change)
	if err != nil {
		return err
	}
	return h.answerRole(c, r, fiber.StatusOK)
}

func (h *HTTP) deleteRole(c *web.Call) error {
	return gone(c, h.auth.DeleteRole(c.UserContext(), c.Principal.OrganizationID, c.Params("role_id")))
}

package accounts

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

const (
	rolesPath = organizationPath + "/roles"
	rolePath  = rolesPath + "/:role_id"
)

func (h *HTTP) roleRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, rolesPath, "role:read", ownOrganization(h.listRoles))
	g.Manage(fiber.MethodPost, rolesPath, "role:write", ownOrganization(adminsOnly(h.createRole)))
	g.Manage(fiber.MethodGet, rolePath, "role:read", ownOrganization(h.readRole))
	g.Manage(fiber.MethodPatch, rolePath, "role:write", ownOrganization(adminsOnly(h.changeRole)))
	g.Manage(fiber.MethodDelete, rolePath, "role:write", ownOrganization(adminsOnly(h.deleteRole)))
	g.Manage(fiber.MethodGet, rolePath+"/role_memberships", "role:read", ownOrganization(h.listRoleMembers))
	g.Manage(fiber.MethodPost, rolePath+"/role_memberships", "role:write", ownOrganization(adminsOnly(h.addRoleMember)))
	g.Manage(fiber.MethodGet, rolePath+"/role_memberships/:id", "role:read", ownOrganization(h.readRoleMember))
	g.Manage(fiber.MethodDelete, rolePath+"/role_memberships/:id", "role:write", ownOrganization(adminsOnly(h.removeRoleMember)))
}

// roleView is the JSON form of a role, also in the access of a flag. The lists of
// the role are JSON inside strings. CreatedBy is what creatorFor returns.
type roleView struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Level           int      `json:"feature_flags_access_level"`
	CreatedAt       web.Time `json:"created_at"`
	CreatedBy       any      `json:"created_by"`
	Members         string   `json:"members"`
	AssociatedFlags string   `json:"associated_flags"`
}

// terraformAgent is the beginning of the User-Agent of PostHog's Terraform provider.
const terraformAgent = "posthog/terraform-provider"

// creatorFor returns the form of the creator that the client reads: the user, nil
// for none. PostHog's Terraform provider reads a string, documented as the UUID of
// the user, and fails on an object after it has created the role.
func creatorFor(c *web.Call, u *auth.User) any {
	switch {
	case u == nil:
		return nil
	case strings.HasPrefix(c.Get(fiber.HeaderUserAgent), terraformAgent):
		return u.UUID
	}
	return u
}

func showRole(r auth.Role, flags []auth.RoleFlag) (roleView, error) {
	members := []roleMemberView{}
	for _, m := range r.Members {
		members = append(members, showRoleMember(m))
	}
	if flags == nil {
		flags = []auth.RoleFlag{}
	}
	v := roleView{ID: r.ID, Name: r.Name, Level: r.FlagsAccessLevel, CreatedAt: web.Time(r.CreatedAt)}
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
	views, err := h.showRoles(c, query.Cut(all, page.Limit, page.Offset)...)
	if err != nil {
		return err
	}
	return c.List(page, len(all), views)
}

// showRoles returns the JSON forms of roles, with the flags of the projects that
// the key may access.
func (h *HTTP) showRoles(c *web.Call, roles ...auth.Role) ([]roleView, error) {
	flags, err := h.flagsOf(c.UserContext(), c.Principal, roles)
	if err != nil {
		return nil, err
	}
	views := make([]roleView, len(roles))
	for i, r := range roles {
		if views[i], err = showRole(r, flags[r.ID]); err != nil {
			return nil, err
		}
		views[i].CreatedBy = creatorFor(c, r.CreatedBy)
	}
	return views, nil
}

func (h *HTTP) flagsOf(ctx context.Context, caller *auth.Principal, roles []auth.Role) (map[string][]auth.RoleFlag, error) {
	if h.flags == nil || len(roles) == 0 {
		return nil, nil
	}
	projects, err := h.auth.Projects(ctx, caller.OrganizationID)
	if err != nil {
		return nil, err
	}
	var projectIDs []int64
	for _, p := range visible(caller, projects) {
		projectIDs = append(projectIDs, p.ID)
	}
	roleIDs := make([]string, len(roles))
	for i, r := range roles {
		roleIDs[i] = r.ID
	}
	return h.flags.FlagsOfRoles(ctx, projectIDs, roleIDs)
}

func (h *HTTP) answerRole(c *web.Call, r auth.Role, status int) error {
	views, err := h.showRoles(c, r)
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
	var r auth.Role
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		r, err = h.auth.CreateRole(ctx, in)
		e := roleEvent(r, activity.Created)
		e.After = stateOfRole(r)
		return e, err
	})
	if err != nil {
		return err
	}
	return h.answerRole(c, r, fiber.StatusCreated)
}

// roleLevel reads the level of a role. core/auth reads 0 as the organization's
// level, so 0 is rejected here.
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
	var r auth.Role
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		before, err := h.auth.Role(ctx, c.Principal.OrganizationID, c.Params("role_id"))
		if err != nil {
			return nil, err
		}
		r, err = h.auth.UpdateRole(ctx, c.Principal.OrganizationID, before.ID, change)
		e := roleEvent(r, activity.Updated)
		e.Before, e.After = stateOfRole(before), stateOfRole(r)
		return e, err
	})
	if err != nil {
		return err
	}
	return h.answerRole(c, r, fiber.StatusOK)
}

func (h *HTTP) deleteRole(c *web.Call) error {
	return noContent(c, h.change(c, func(ctx context.Context) (*activity.Event, error) {
		r, err := h.auth.Role(ctx, c.Principal.OrganizationID, c.Params("role_id"))
		if err != nil {
			return nil, err
		}
		return roleEvent(r, activity.Deleted), h.auth.DeleteRole(ctx, r.OrganizationID, r.ID)
	}))
}

package accounts

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

const (
	accessPath  = organizationPath + "/resource_access"
	flagsAccess = "feature_flags"
)

func (h *HTTP) accessRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, accessPath, "organization:read", ownOrganization(h.listAccess))
	g.Manage(fiber.MethodGet, accessPath+"/:resource", "organization:read", ownOrganization(knownResource(h.readAccess)))
	g.Manage(fiber.MethodPatch, accessPath+"/:resource", "organization:write", ownOrganization(adminsOnly(knownResource(h.changeAccess))))
}

// accessView is the default access of members to objects of other members.
type accessView struct {
	Resource    string `json:"resource"`
	AccessLevel int    `json:"access_level"`
}

func showAccess(o auth.Organization) accessView { return accessView{flagsAccess, o.FlagsAccessLevel} }

// knownResource accepts only flags: other resources have no levels.
func knownResource(next handler) handler {
	return func(c *web.Call) error {
		if c.Params("resource") != flagsAccess {
			return errNotFound
		}
		return next(c)
	}
}

func (h *HTTP) listAccess(c *web.Call) error {
	o, err := h.auth.Organization(c.UserContext(), c.Principal.OrganizationID)
	return list(c, showAccess, []auth.Organization{o}, err)
}

func (h *HTTP) readAccess(c *web.Call) error {
	o, err := h.auth.Organization(c.UserContext(), c.Principal.OrganizationID)
	return answer(c, showAccess, o, err)
}

func (h *HTTP) changeAccess(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	level := body.Int("access_level")
	if level.Set && level.Value != auth.CanView && level.Value != auth.CanEdit {
		body.Fail("access_level", "invalid_choice", "The level must be 21 (can view) or 37 (can edit).")
	}
	if err := body.Err(); err != nil {
		return err
	}
	change := auth.OrganizationChange{FlagsAccessLevel: number(level)}
	o, err := h.updateOrganization(c, change)
	return answer(c, showAccess, o, err)
}

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
	g.Manage(fiber.MethodGet, accessPath, "organization:read", ours(h.listAccess))
	g.Manage(fiber.MethodGet, accessPath+"/:resource", "organization:read", ours(known(h.readAccess)))
	g.Manage(fiber.MethodPatch, accessPath+"/:resource", "organization:write", ours(admins(known(h.changeAccess))))
}

// accessView says what members of an organization may do with things of a kind
// that others made, unless a role of theirs says something else.
type accessView struct {
	Resource    string `json:"resource"`
	AccessLevel int    `json:"access_level"`
}

func showAccess(o auth.Organization) accessView { return accessView{flagsAccess, o.FlagsAccessLevel} }

// known lets only flags through: there are levels for nothing else.
func known(next handler) handler {
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
	o, err := h.auth.UpdateOrganization(c.UserContext(), c.Principal.OrganizationID, change)
	return answer(c, showAccess, o, err)
}

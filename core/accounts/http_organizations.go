package accounts

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

func (h *HTTP) organizationRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, organizationsPath, "organization:read", h.listOrganizations)
	g.Manage(fiber.MethodGet, organizationPath, "organization:read", ownOrganization(h.readOrganization))
	g.Manage(fiber.MethodPatch, organizationPath, "organization:write", ownOrganization(adminsOnly(h.changeOrganization)))
}

// organizationView is the JSON form of an organization for a member, whose level
// is Level.
type organizationView struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	CreatedAt web.Time `json:"created_at"`
	UpdatedAt web.Time `json:"updated_at"`
	Level     int      `json:"membership_level"`
}

func showOrganization(to *auth.Principal) func(auth.Organization) organizationView {
	return func(o auth.Organization) organizationView {
		return organizationView{
			ID: o.ID, Name: o.Name, CreatedAt: web.Time(o.CreatedAt), UpdatedAt: web.Time(o.UpdatedAt), Level: to.OrgLevel,
		}
	}
}

// listOrganizations lists the one organization of the key.
func (h *HTTP) listOrganizations(c *web.Call) error {
	o, err := h.auth.Organization(c.UserContext(), c.Principal.OrganizationID)
	return list(c, showOrganization(c.Principal), []auth.Organization{o}, err)
}

func (h *HTTP) readOrganization(c *web.Call) error {
	o, err := h.auth.Organization(c.UserContext(), c.Principal.OrganizationID)
	return answer(c, showOrganization(c.Principal), o, err)
}

func (h *HTTP) changeOrganization(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	change := auth.OrganizationChange{Name: given(body.String("name"))}
	if err := body.Err(); err != nil {
		return err
	}
	o, err := h.updateOrganization(c, change)
	return answer(c, showOrganization(c.Principal), o, err)
}

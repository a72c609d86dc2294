package accounts

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

func (h *HTTP) projectRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, projectsPath, "project:read", h.listProjects)
	g.Manage(fiber.MethodPost, projectsPath, "project:write", adminsOnly(h.createProject))
	g.Manage(fiber.MethodGet, projectPath, "project:read", h.readProject)
	g.Manage(fiber.MethodPatch, projectPath, "project:write", adminsOnly(h.changeProject))
	g.Manage(fiber.MethodDelete, projectPath, "project:write", adminsOnly(h.closeProject))
	// The same under the path of the organization, as other clients name it.
	of := organizationPath + "/projects"
	g.Manage(fiber.MethodGet, of, "project:read", ownOrganization(h.listProjects))
	g.Manage(fiber.MethodPost, of, "project:write", ownOrganization(adminsOnly(h.createProject)))
	g.Manage(fiber.MethodGet, of+"/:project_id", "project:read", ownOrganization(h.readProject))
	g.Manage(fiber.MethodPatch, of+"/:project_id", "project:write", ownOrganization(adminsOnly(h.changeProject)))
	g.Manage(fiber.MethodDelete, of+"/:project_id", "project:write", ownOrganization(adminsOnly(h.closeProject)))
	g.Manage(fiber.MethodGet, projectPath+"/keys", "project:read", h.listProjectKeys)
	g.Manage(fiber.MethodPost, projectPath+"/keys", "project:write", adminsOnly(h.createProjectKey))
	g.Manage(fiber.MethodDelete, projectPath+"/keys/:id", "project:write", adminsOnly(h.revokeProjectKey))
}

// projectView is the JSON form of a project. APIToken is its oldest valid key. The
// secret tokens are masks of the rotating secret, except for the new secret in the
// answer to its rotation; lists have null.
type projectView struct {
	ID           int64    `json:"id"`
	Organization string   `json:"organization"`
	Name         string   `json:"name"`
	APIToken     *string  `json:"api_token"`
	Timezone     string   `json:"timezone"`
	AnonymizeIPs bool     `json:"anonymize_ips"`
	CreatedAt    web.Time `json:"created_at"`
	Secret       *string  `json:"secret_api_token"`
	SecretBackup *string  `json:"secret_api_token_backup"`
}

func showProject(p auth.Project, token string) projectView {
	v := projectView{
		ID: p.ID, Organization: p.OrganizationID, Name: p.Name,
		Timezone: p.Timezone, AnonymizeIPs: p.AnonymizeIPs, CreatedAt: web.Time(p.CreatedAt),
	}
	if token != "" {
		v.APIToken = &token
	}
	return v
}

// showProjects returns a function from the given projects to their JSON form.
func (h *HTTP) showProjects(ctx context.Context, projects ...auth.Project) (func(auth.Project) projectView, error) {
	ids := make([]int64, len(projects))
	for i, p := range projects {
		ids[i] = p.ID
	}
	tokens, err := h.auth.Tokens(ctx, ids)
	return func(p auth.Project) projectView { return showProject(p, tokens[p.ID]) }, err
}

func (h *HTTP) listProjects(c *web.Call) error {
	all, err := h.auth.Projects(c.UserContext(), c.Principal.OrganizationID)
	if err != nil {
		return err
	}
	all = visible(c.Principal, all)
	show, err := h.showProjects(c.UserContext(), query.Cut(all, c.Page().Limit, c.Page().Offset)...)
	return list(c, show, all, err)
}

func (h *HTTP) createProject(c *web.Call) error {
	if c.Principal.IsRestricted() {
		return fault.New(fault.Forbidden, "permission_denied", "An API key that is kept to some projects cannot make others.")
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	in := auth.NewProject{
		OrganizationID: c.Principal.OrganizationID,
		Name:           body.String("name", web.Required).Value,
		Timezone:       body.String("timezone").Value,
		AnonymizeIPs:   body.Bool("anonymize_ips").Value,
	}
	if err := body.Err(); err != nil {
		return err
	}
	var p auth.Project
	var key auth.ProjectKey
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		p, key, err = h.auth.CreateProject(ctx, in)
		e := projectEvent(p, activity.Created)
		e.After = stateOfProject(p)
		return e, err
	})
	if err != nil {
		return err
	}
	return created(c, showProject(p, key.Key))
}

func (h *HTTP) readProject(c *web.Call) error { return h.answerProject(c, c.Project) }

func (h *HTTP) changeProject(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	change := auth.ProjectChange{
		Name:         given(body.String("name")),
		Timezone:     given(body.String("timezone")),
		AnonymizeIPs: given(body.Bool("anonymize_ips")),
	}
	if err := body.Err(); err != nil {
		return err
	}
	var p auth.Project
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		p, err = h.auth.UpdateProject(ctx, c.Project.ID, change)
		e := projectEvent(p, activity.Updated)
		e.Before, e.After = stateOfProject(c.Project), stateOfProject(p)
		return e, err
	})
	if err != nil {
		return err
	}
	return h.answerProject(c, p)
}

func (h *HTTP) answerProject(c *web.Call, p auth.Project) error {
	return h.answerProjectWith(c, p, "")
}

// answerProjectWith answers with a project and its new secret, which may be empty.
func (h *HTTP) answerProjectWith(c *web.Call, p auth.Project, secret string) error {
	tokens, err := h.auth.Tokens(c.UserContext(), []int64{p.ID})
	if err != nil {
		return err
	}
	rotation, err := h.auth.SecretKeys.Rotation(c.UserContext(), p.ID)
	if err != nil {
		return err
	}
	v := showProject(p, tokens[p.ID])
	if rotation.Active != nil {
		v.Secret = &rotation.Active.Mask
	}
	if rotation.Backup != nil {
		v.SecretBackup = &rotation.Backup.Mask
	}
	if secret != "" {
		v.Secret = &secret
	}
	return web.JSON(c.Ctx, v)
}

// closeProject closes the project: its keys become invalid and it is no longer
// listed. Its data is not deleted.
func (h *HTTP) closeProject(c *web.Call) error {
	return noContent(c, h.change(c, func(ctx context.Context) (*activity.Event, error) {
		return projectEvent(c.Project, activity.Deleted), h.auth.RevokeProject(ctx, c.Project.ID)
	}))
}

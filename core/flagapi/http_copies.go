package flagapi

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/web"
)

const organizationFlagsPath = "/api/organizations/:organization_id/feature_flags"

// copiesHTTP serves the flags of all projects of an organization.
type copiesHTTP struct {
	service  *flags.Service
	cohorts  *cohorts.Service
	accounts Projects
}

func (h copiesHTTP) routes(g *web.Router) {
	g.Manage("GET", organizationFlagsPath+"/:key", scopeRead, h.byKey)
	g.Manage("POST", organizationFlagsPath+"/copy_flags", scopeWrite, h.copy)
}

// projects returns the projects of the organization of the path that the key may
// see, by id.
func (h copiesHTTP) projects(c *web.Call) (map[int64]auth.Project, []auth.Project, error) {
	id := c.Params("organization_id")
	if id != auth.Current && !strings.EqualFold(id, c.Principal.OrganizationID) {
		return nil, nil, errNotFound
	}
	if c.Method() == fiber.MethodPost && c.Principal.IsRestricted() {
		return nil, nil, fault.New(fault.Forbidden, "permission_denied", "An API key that is restricted to some projects cannot copy flags between projects.")
	}
	all, err := h.accounts.Projects(c.UserContext(), c.Principal.OrganizationID)
	if err != nil {
		return nil, nil, err
	}
	known := map[int64]auth.Project{}
	var list []auth.Project
	for _, p := range all {
		if c.Principal.CanAccessProject(p.ID) {
			known[p.ID] = p
			list = append(list, p)
		}
	}
	return known, list, nil
}

type projectFlag struct {
	FlagID    int64           `json:"flag_id"`
	ProjectID int64           `json:"project_id"`
	TeamID    int64           `json:"team_id"` // another name of the project
	CreatedBy *auth.User      `json:"created_by"`
	Filters   json.RawMessage `json:"filters"`
	CreatedAt web.Instant     `json:"created_at"`
	Active    bool            `json:"active"`
}

// byKey answers with the flags of all projects that have a key.
func (h copiesHTTP) byKey(c *web.Call) error {
	_, projects, err := h.projects(c)
	if err != nil {
		return err
	}
	out := []projectFlag{}
	for _, p := range projects {
		f, err := h.service.ByKey(c.UserContext(), p.ID, c.Params("key"))
		if fault.Is(err, fault.NotFound) || err == nil && f.Deleted {
			continue
		}
		if err != nil {
			return err
		}
		views, err := h.service.Show(c.UserContext(), c.Principal, f)
		if err != nil {
			return err
		}
		v := &views[0]
		out = append(out, projectFlag{FlagID: f.ID, ProjectID: p.ID, TeamID: p.ID, CreatedBy: v.CreatedBy, Filters: v.Filters, CreatedAt: v.CreatedAt, Active: v.Active})
	}
	return web.JSON(c.Ctx, out)
}

type copyFailure struct {
	ProjectID int64  `json:"project_id"`
	Message   string `json:"error_message"`
}

// copy creates a flag in other projects, or changes the flag with its key there. A
// project in which that fails does not stop the others.
func (h copiesHTTP) copy(c *web.Call) error {
	if err := h.service.MayCreate(c.UserContext(), c.Principal); err != nil {
		return err
	}
	projects, _, err := h.projects(c)
	if err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	key := body.String("feature_flag_key", web.Required).Value
	from := body.Int("from_project", web.Required).Value
	targets := body.Ints("target_project_ids", web.Required, web.Max(maxBulk)).Value
	if err := body.Err(); err != nil {
		return err
	}
	source, err := h.source(c.UserContext(), projects, from, key)
	if err != nil {
		return err
	}
	out := struct {
		Success []flags.View  `json:"success"`
		Failed  []copyFailure `json:"failed"`
	}{[]flags.View{}, []copyFailure{}}
	for _, id := range targets {
		v, err := h.copyTo(c, source, projects, id)
		switch problem := fault.From(err); {
		case err == nil:
			out.Success = append(out.Success, v)
		case problem == nil || problem.Kind == fault.Unavailable:
			return err
		default:
			out.Failed = append(out.Failed, copyFailure{id, problem.Detail})
		}
	}
	return web.JSON(c.Ctx, out)
}

func (h copiesHTTP) source(ctx context.Context, projects map[int64]auth.Project, from int64, key string) (*flags.Flag, error) {
	if _, ok := projects[from]; !ok {
		return nil, fault.Field("from_project", "does_not_exist", "Project not found.")
	}
	f, err := h.service.ByKey(ctx, from, key)
	if fault.Is(err, fault.NotFound) || err == nil && f.Deleted {
		return nil, fault.Field("feature_flag_key", "does_not_exist", "Feature flag to copy does not exist.")
	}
	return f, err
}

// copyTo copies source to a project, with the cohorts that it refers to and that
// have no namesake there. Its dashboards, and what refers to them, stay behind.
func (h copiesHTTP) copyTo(c *web.Call, source *flags.Flag, projects map[int64]auth.Project, id int64) (flags.View, error) {
	project, ok := projects[id]
	if !ok {
		return flags.View{}, fault.New(fault.NotFound, "not_found", "Project not found.")
	}
	if id == source.ProjectID {
		return flags.View{}, fault.New(fault.Invalid, "invalid_input", "The flag is from this project.")
	}
	filters, err := h.service.OpenFilters(source)
	if err != nil {
		return flags.View{}, err
	}
	filters, err = newCohortCopier(h.cohorts, c.Principal, projects[source.ProjectID], project).mapFilters(c.UserContext(), filters)
	if err != nil {
		return flags.View{}, err
	}
	in := flags.Input{
		Name: &source.Name, Key: &source.Key, Filters: filters, Active: &source.Active,
		ExperienceContinuity: &source.ExperienceContinuity, Tags: &source.Tags, RollbackConditions: source.RollbackConditions,
		Bucketing: &source.Bucketing, Runtime: &source.Runtime, Contexts: &source.Contexts,
		RemoteConfiguration: &source.RemoteConfiguration, EncryptedPayloads: &source.EncryptedPayloads,
	}
	existing, err := h.service.ByKey(c.UserContext(), id, source.Key)
	var f *flags.Flag
	switch {
	case err == nil && !existing.Deleted:
		f, err = h.service.Update(c.UserContext(), c.Principal, project, existing.ID, in)
	case err == nil || fault.Is(err, fault.NotFound):
		f, err = h.service.Create(c.UserContext(), c.Principal, project, in)
	}
	if err != nil {
		return flags.View{}, err
	}
	views, err := h.service.Show(c.UserContext(), c.Principal, f)
	if err != nil {
		return flags.View{}, err
	}
	return views[0], nil
}

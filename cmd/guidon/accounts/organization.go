package accounts

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// OrganizationCommands are the commands on the organization.
type OrganizationCommands struct {
	Show    organizationShowCmd    `cmd:"" help:"Print the organizations with their projects."`
	Members organizationMembersCmd `cmd:"" help:"List the members of an organization with their levels."`
}

// placeFlags are the flags of commands that print something of either place.
type placeFlags struct {
	command.Place `embed:""`
	Output        string `short:"o" enum:"table,json,yaml" default:"table" help:"table, json or yaml."`
}

func (f placeFlags) print(e *command.Env, v any, header string, rows [][]any) error {
	return command.Remote{Output: f.Output}.Print(e, v, header, rows)
}

// organization and its parts have the fields that the commands print.
type organization struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Projects []project `json:"projects"`
}

type project struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Timezone string `json:"timezone"`
}

type member struct {
	ID       int64  `json:"id"`
	Email    string `json:"email"`
	Name     string `json:"first_name"`
	Level    string `json:"level"`
	JoinedAt string `json:"joined_at"`
}

type organizationShowCmd struct {
	placeFlags `embed:""`
}

func (c organizationShowCmd) Run(e *command.Env) error {
	all, err := c.read(e)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, o := range all {
		for _, p := range o.Projects {
			rows = append(rows, []any{o.ID, o.Name, p.ID, p.Name, p.Timezone})
		}
		if len(o.Projects) == 0 {
			rows = append(rows, []any{o.ID, o.Name, "-", "-", "-"})
		}
	}
	return c.print(e, all, "ORGANIZATION NAME PROJECT PROJECT_NAME TIMEZONE", rows)
}

func (c organizationShowCmd) read(e *command.Env) ([]organization, error) {
	client, err := c.Client(e, 0)
	if err != nil {
		return nil, err
	}
	if client == nil {
		return databaseOrganizations(e)
	}
	ctx := context.Background()
	all := []organization{}
	texts, err := client.All(ctx, "/api/organizations/", nil, 0)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		var o organization
		if err := json.Unmarshal(text, &o); err != nil {
			return nil, err
		}
		projects, err := client.All(ctx, "/api/organizations/"+url.PathEscape(o.ID)+"/projects/", nil, 0)
		if err != nil {
			return nil, err
		}
		for _, text := range projects {
			var p project
			if err := json.Unmarshal(text, &p); err != nil {
				return nil, err
			}
			o.Projects = append(o.Projects, p)
		}
		all = append(all, o)
	}
	return all, nil
}

func databaseOrganizations(e *command.Env) ([]organization, error) {
	all := []organization{}
	err := withAdmin(e, func(ctx context.Context, a *app.Admin) error {
		stored, err := a.Organizations(ctx)
		if err != nil {
			return err
		}
		for _, o := range stored {
			projects, err := a.Projects(ctx, o.ID)
			if err != nil {
				return err
			}
			one := organization{ID: o.ID, Name: o.Name}
			for _, p := range projects {
				one.Projects = append(one.Projects, project{p.ID, p.Name, p.Timezone})
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

type organizationMembersCmd struct {
	placeFlags   `embed:""`
	Organization string `help:"Id of the organization; required only if there are several." placeholder:"ID"`
}

func (c organizationMembersCmd) Run(e *command.Env) error {
	all, err := c.read(e)
	if err != nil {
		return err
	}
	return c.print(e, all, memberHeader, memberRows(all))
}

const memberHeader = "ID EMAIL NAME LEVEL JOINED"

func memberRows(all []member) [][]any {
	rows := make([][]any, len(all))
	for i, m := range all {
		rows[i] = []any{m.ID, m.Email, m.Name, m.Level, m.JoinedAt}
	}
	return rows
}

func (c organizationMembersCmd) read(e *command.Env) ([]member, error) {
	client, err := c.Client(e, 0)
	if err != nil {
		return nil, err
	}
	if client != nil {
		return members(client, c.Organization)
	}
	all := []member{}
	err = withAdmin(e, func(ctx context.Context, a *app.Admin) (err error) {
		id := c.Organization
		if id == "" {
			if id, err = a.DefaultOrganization(ctx); err != nil {
				return err
			}
		}
		stored, err := a.Members(ctx, id)
		for _, m := range stored {
			all = append(all, member{m.User.ID, m.User.Email, m.User.FirstName, levelName(m.Level), m.JoinedAt.UTC().Format(timeLayout)})
		}
		return err
	})
	return all, err
}

const timeLayout = "2006-01-02T15:04:05Z07:00"

// members returns the members of the organization with the id, or that of the key for "".
func members(c *remote.Client, id string) ([]member, error) {
	texts, err := c.All(context.Background(), "/api/organizations/"+url.PathEscape(cmp.Or(id, "@current"))+"/members/", nil, 0)
	all := make([]member, len(texts))
	for i, text := range texts {
		var m struct {
			User     member
			Level    int
			JoinedAt string `json:"joined_at"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, err
		}
		all[i] = m.User
		all[i].Level, all[i].JoinedAt = levelName(m.Level), m.JoinedAt
	}
	return all, err
}

// levelName returns the name of a level of a member.
func levelName(level int) string {
	switch {
	case level >= 15:
		return "owner"
	case level >= 8:
		return "admin"
	}
	return "member"
}

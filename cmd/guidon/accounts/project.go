package accounts

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/projectdata"
)

// ProjectCommands are the commands on projects.
type ProjectCommands struct {
	Create projectCreateCmd `cmd:"" help:"Create a project and print its key."`
	List   projectListCmd   `cmd:"" help:"List projects."`
	Revoke projectRevokeCmd `cmd:"" help:"Close a project: its keys stop working; its data is kept."`

	Retention projectdata.Retention `cmd:"" help:"Show or change how long a project keeps events."`
}

type projectCreateCmd struct {
	Name         string `arg:"" help:"Name of the project."`
	Organization string `help:"Id of the organization; required only if there are several."`
	Timezone     string `default:"UTC" help:"IANA time zone of the dates in flag conditions."`
}

func (c projectCreateCmd) Run(e *command.Env) error {
	return withAdmin(e, func(ctx context.Context, a *app.Admin) (err error) {
		if c.Organization == "" {
			if c.Organization, err = a.DefaultOrganization(ctx); err != nil {
				return err
			}
		}
		p, key, err := a.NewProject(ctx, c.Organization, c.Name, c.Timezone)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Out, "project %d\n%s\n", p, key)
		return err
	})
}

type projectListCmd struct {
	Output string `short:"o" enum:"table,json,yaml" default:"table" help:"table, json or yaml."`
}

// databaseProject has the fields that project list prints.
type databaseProject struct {
	project
	CreatedAt    string `json:"created_at"`
	Organization string `json:"organization"`
}

func (c projectListCmd) Run(e *command.Env) error {
	return withAdmin(e, func(ctx context.Context, a *app.Admin) error {
		organizations, err := a.Organizations(ctx)
		if err != nil {
			return err
		}
		all, rows := []databaseProject{}, [][]any{}
		for _, o := range organizations {
			projects, err := a.Projects(ctx, o.ID)
			if err != nil {
				return err
			}
			for _, p := range projects {
				all = append(all, databaseProject{project{p.ID, p.Name, p.Timezone}, p.CreatedAt.UTC().Format(timeLayout), o.Name})
				rows = append(rows, []any{p.ID, p.Name, p.Timezone, command.FormatTime(p.CreatedAt), o.Name})
			}
		}
		return placeFlags{Output: c.Output}.print(e, all, "ID NAME TIMEZONE CREATED ORGANIZATION", rows)
	})
}

type projectRevokeCmd struct {
	command.Change `embed:""`
	ID             int64 `arg:"" help:"Id of the project."`
}

// Run closes the project after a question with its keys.
func (c projectRevokeCmd) Run(e *command.Env) error {
	return withAdmin(e, func(ctx context.Context, a *app.Admin) error {
		p, err := a.Project(ctx, c.ID)
		if err != nil {
			return err
		}
		public, err := activeKeys(databaseKeys{ctx, a, keyOwner{Project: c.ID}, false})
		if err != nil {
			return err
		}
		secret, err := activeKeys(databaseKeys{ctx, a, keyOwner{Project: c.ID}, true})
		if err != nil {
			return err
		}
		what := fmt.Sprintf("close project %d (%s): requests with %s and %s are refused; its data is kept",
			p.ID, output.Clean(p.Name), command.Plural(public, "project key"), command.Plural(secret, "secret key"))
		if ok, err := c.Proceed(e, what); !ok {
			return err
		}
		if err := a.RevokeProject(ctx, c.ID); err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Out, "project %d is closed\n", c.ID)
		return err
	})
}

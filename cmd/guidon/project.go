package main

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/app"
)

type projectCmd struct {
	Create projectCreateCmd `cmd:"" help:"Create a project and print its key."`
	List   projectListCmd   `cmd:"" help:"List projects."`
	Revoke projectRevokeCmd `cmd:"" help:"Close a project: its keys stop working; its data is kept."`
}

type projectCreateCmd struct {
	Name         string `arg:"" help:"Name of the project."`
	Organization string `help:"Id of the organization; required only if there are several."`
	Timezone     string `default:"UTC" help:"IANA time zone of the dates in flag conditions."`
}

func (c projectCreateCmd) Run(e *env) error {
	return e.withAdmin(func(ctx context.Context, a *app.Admin) (err error) {
		if c.Organization == "" {
			if c.Organization, err = a.DefaultOrganization(ctx); err != nil {
				return err
			}
		}
		p, key, err := a.NewProject(ctx, c.Organization, c.Name, c.Timezone)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.out, "project %d\n%s\n", p, key)
		return err
	})
}

type projectListCmd struct{}

func (projectListCmd) Run(e *env) error {
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error {
		organizations, err := a.Organizations(ctx)
		if err != nil {
			return err
		}
		var rows [][]any
		for _, o := range organizations {
			projects, err := a.Projects(ctx, o.ID)
			if err != nil {
				return err
			}
			for _, p := range projects {
				rows = append(rows, []any{p.ID, p.Name, p.Timezone, formatTime(p.CreatedAt), o.Name})
			}
		}
		return e.table("ID NAME TIMEZONE CREATED ORGANIZATION", rows)
	})
}

type projectRevokeCmd struct {
	ID int64 `arg:"" help:"Id of the project."`
}

func (c projectRevokeCmd) Run(e *env) error {
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error { return a.RevokeProject(ctx, c.ID) })
}

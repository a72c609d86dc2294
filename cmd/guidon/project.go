package main

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/app"
)

type projectVerb struct {
	Create projectCreateVerb `cmd:"" help:"Create a project and print its key."`
	List   projectListVerb   `cmd:"" help:"List projects."`
	Revoke projectRevokeVerb `cmd:"" help:"Close a project: its keys stop working, its data stays."`
}

type projectCreateVerb struct {
	Name         string `arg:"" help:"Name of the project."`
	Organization string `help:"Id of the organization; needed only when there are several."`
	Timezone     string `default:"UTC" help:"IANA time zone in which dates of flag conditions are read."`
}

func (v projectCreateVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) (err error) {
		if v.Organization == "" {
			if v.Organization, err = a.DefaultOrganization(ctx); err != nil {
				return err
			}
		}
		p, key, err := a.NewProject(ctx, v.Organization, v.Name, v.Timezone)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.out, "project %d\n%s\n", p, key)
		return err
	})
}

type projectListVerb struct{}

func (projectListVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) error {
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
				rows = append(rows, []any{p.ID, p.Name, p.Timezone, day(p.CreatedAt), o.Name})
			}
		}
		return e.table("ID NAME TIMEZONE CREATED ORGANIZATION", rows)
	})
}

type projectRevokeVerb struct {
	ID int64 `arg:"" help:"Id of the project."`
}

func (v projectRevokeVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) error { return a.RevokeProject(ctx, v.ID) })
}

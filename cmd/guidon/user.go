package main

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/app"
)

type userVerb struct {
	Create userCreateVerb `cmd:"" help:"Create a user of an organization."`
	List   userListVerb   `cmd:"" help:"List users."`
	Revoke userRevokeVerb `cmd:"" help:"Take a user's access away: their personal keys stop working."`
}

type userCreateVerb struct {
	Email        string `arg:"" help:"E-mail address."`
	Name         string `help:"First name."`
	Organization string `help:"Id of the organization; needed only when there are several."`
	Level        string `enum:"member,admin,owner" default:"member" help:"member, admin or owner."`
}

func (v userCreateVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) (err error) {
		if v.Organization == "" {
			if v.Organization, err = a.DefaultOrganization(ctx); err != nil {
				return err
			}
		}
		id, err := a.NewUser(ctx, v.Organization, v.Email, v.Name, v.Level)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.out, "user %d\n", id)
		return err
	})
}

type userListVerb struct{}

func (userListVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) error {
		users, err := a.Users(ctx)
		if err != nil {
			return err
		}
		rows := make([][]any, 0, len(users))
		for _, u := range users {
			rows = append(rows, []any{u.ID, u.Email, u.FirstName, u.UUID})
		}
		return e.table("ID EMAIL NAME UUID", rows)
	})
}

type userRevokeVerb struct {
	ID int64 `arg:"" help:"Id of the user."`
}

func (v userRevokeVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) error { return a.RevokeUser(ctx, v.ID) })
}

package main

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/app"
)

type userCmd struct {
	Create   userCreateCmd   `cmd:"" help:"Create a user in an organization."`
	List     userListCmd     `cmd:"" help:"List users."`
	Revoke   userRevokeCmd   `cmd:"" help:"Revoke the access of a user: the personal keys of the user stop working."`
	Operator userOperatorCmd `cmd:"" help:"Grant or revoke the right to administer the server: its plugins and its configuration."`
}

type userCreateCmd struct {
	Email        string `arg:"" help:"E-mail address."`
	Name         string `help:"First name."`
	Organization string `help:"Id of the organization; required only if there are several."`
	Level        string `enum:"member,admin,owner" default:"member" help:"member, admin or owner."`
	Operator     bool   `help:"Also grant the right to administer the server."`
}

func (c userCreateCmd) Run(e *env) error {
	return e.withAdmin(func(ctx context.Context, a *app.Admin) (err error) {
		if c.Organization == "" {
			if c.Organization, err = a.DefaultOrganization(ctx); err != nil {
				return err
			}
		}
		id, err := a.NewUser(ctx, c.Organization, c.Email, c.Name, c.Level, c.Operator)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.out, "user %d\n", id)
		return err
	})
}

type userListCmd struct{}

func (userListCmd) Run(e *env) error {
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error {
		users, err := a.Users(ctx)
		if err != nil {
			return err
		}
		rows := make([][]any, 0, len(users))
		for _, u := range users {
			rows = append(rows, []any{u.ID, u.Email, u.FirstName, yesNo(u.Operator), u.UUID})
		}
		return e.table("ID EMAIL NAME OPERATOR UUID", rows)
	})
}

type userRevokeCmd struct {
	ID int64 `arg:"" help:"Id of the user."`
}

func (c userRevokeCmd) Run(e *env) error {
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error { return a.RevokeUser(ctx, c.ID) })
}

type userOperatorCmd struct {
	Grant  operatorGrantCmd  `cmd:"" help:"Grant a user the operator right."`
	Revoke operatorRevokeCmd `cmd:"" help:"Revoke the operator right of a user; keys and memberships stay."`
}

type operatorGrantCmd struct {
	ID int64 `arg:"" help:"Id of the user."`
}

func (c operatorGrantCmd) Run(e *env) error { return e.setOperator(c.ID, true) }

type operatorRevokeCmd struct {
	ID int64 `arg:"" help:"Id of the user."`
}

func (c operatorRevokeCmd) Run(e *env) error { return e.setOperator(c.ID, false) }

func (e *env) setOperator(user int64, operator bool) error {
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error { return a.SetOperator(ctx, user, operator) })
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

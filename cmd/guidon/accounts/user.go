package accounts

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// UserCommands are the commands on users.
type UserCommands struct {
	Create    userCreateCmd    `cmd:"" help:"Create a user in an organization."`
	List      userListCmd      `cmd:"" help:"List users."`
	Revoke    userRevokeCmd    `cmd:"" help:"Revoke the access of a user: the personal keys of the user stop working."`
	Invite    userInviteCmd    `cmd:"" help:"Invite an address into the organization and print the command that accepts it."`
	Invites   userInvitesCmd   `cmd:"" help:"List open invitations."`
	Uninvite  userUninviteCmd  `cmd:"" help:"Delete an open invitation."`
	Role      userRoleCmd      `cmd:"" help:"Make a member of the organization a member, admin or owner."`
	Remove    userRemoveCmd    `cmd:"" help:"Remove a member from the organization; revoke ends all access to the server."`
	LoginLink userLoginLinkCmd `cmd:"" help:"Print a link that signs a user in to the console once."`
	Operator  userOperatorCmd  `cmd:"" help:"Grant or revoke the right to administer the server: its plugins and its configuration."`
}

type userCreateCmd struct {
	Email        string `arg:"" help:"E-mail address."`
	Name         string `help:"First name."`
	Organization string `help:"Id of the organization; required only if there are several."`
	Level        string `enum:"member,admin,owner" default:"member" help:"member, admin or owner."`
	Operator     bool   `help:"Also grant the right to administer the server."`
}

func (c userCreateCmd) Run(e *command.Env) error {
	return withAdmin(e, func(ctx context.Context, a *app.Admin) (err error) {
		if c.Organization == "" {
			if c.Organization, err = a.DefaultOrganization(ctx); err != nil {
				return err
			}
		}
		id, err := a.NewUser(ctx, c.Organization, c.Email, c.Name, c.Level, c.Operator)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Out, "user %d\n", id)
		return err
	})
}

type userListCmd struct {
	placeFlags `embed:""`
}

// databaseUser has the fields of a user of the database that user list prints.
type databaseUser struct {
	ID       int64  `json:"id"`
	Email    string `json:"email"`
	Name     string `json:"first_name"`
	Operator bool   `json:"operator"`
	UUID     string `json:"uuid"`
}

// Run prints all users of the database, or the members of the organization of the key.
func (c userListCmd) Run(e *command.Env) error {
	client, err := c.Client(e, 0)
	if err != nil {
		return err
	}
	if client != nil {
		all, err := members(client, "")
		if err != nil {
			return err
		}
		return c.print(e, all, memberHeader, memberRows(all))
	}
	return withAdmin(e, func(ctx context.Context, a *app.Admin) error {
		users, err := a.Users(ctx)
		if err != nil {
			return err
		}
		all, rows := make([]databaseUser, len(users)), make([][]any, len(users))
		for i, u := range users {
			all[i] = databaseUser{u.ID, u.Email, u.FirstName, u.Operator, u.UUID}
			rows[i] = []any{u.ID, u.Email, u.FirstName, command.YesNo(u.Operator), u.UUID}
		}
		return c.print(e, all, "ID EMAIL NAME OPERATOR UUID", rows)
	})
}

type userRevokeCmd struct {
	command.Change `embed:""`
	ID             int64 `arg:"" help:"Id of the user."`
}

// Run revokes the user after a question with the keys.
func (c userRevokeCmd) Run(e *command.Env) error {
	return withAdmin(e, func(ctx context.Context, a *app.Admin) error {
		u, err := a.User(ctx, c.ID)
		if err != nil {
			return err
		}
		n, err := activeKeys(databaseKeys{ctx, a, keyOwner{User: c.ID}, false})
		if err != nil {
			return err
		}
		what := fmt.Sprintf("revoke user %d (%s): requests with %s are refused; what the user has created stays", u.ID, output.Clean(u.Email), command.Plural(n, "personal key"))
		if ok, err := c.Proceed(e, what); !ok {
			return err
		}
		if err := a.RevokeUser(ctx, c.ID); err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Out, "user %d is revoked\n", c.ID)
		return err
	})
}

type userOperatorCmd struct {
	Grant  operatorGrantCmd  `cmd:"" help:"Grant a user the operator right."`
	Revoke operatorRevokeCmd `cmd:"" help:"Revoke the operator right of a user; keys and memberships stay."`
}

type operatorGrantCmd struct {
	ID int64 `arg:"" help:"Id of the user."`
}

func (c operatorGrantCmd) Run(e *command.Env) error {
	return withAdmin(e, func(ctx context.Context, a *app.Admin) error { return a.SetOperator(ctx, c.ID, true) })
}

type operatorRevokeCmd struct {
	command.Change `embed:""`
	ID             int64 `arg:"" help:"Id of the user."`
}

// Run revokes the right after a question with the operators that remain.
func (c operatorRevokeCmd) Run(e *command.Env) error {
	return withAdmin(e, func(ctx context.Context, a *app.Admin) error {
		u, err := a.User(ctx, c.ID)
		if err != nil {
			return err
		}
		users, err := a.Users(ctx)
		if err != nil {
			return err
		}
		others := 0
		for _, o := range users {
			if o.Operator && o.ID != c.ID {
				others++
			}
		}
		what := fmt.Sprintf("revoke the operator right of user %d (%s): the server has %s", u.ID, output.Clean(u.Email), command.Plural(others, "other operator"))
		if ok, err := c.Proceed(e, what); !ok {
			return err
		}
		return a.SetOperator(ctx, c.ID, false)
	})
}

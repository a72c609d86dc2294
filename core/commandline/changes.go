package commandline

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/accounts"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/secretkey"
	"github.com/guidonhq/guidon/core/signin"
)

// change makes a change together with its entry in the activity log, whose user is
// the command line.
func (a *Accounts) change(ctx context.Context, do func(ctx context.Context) (*activity.Event, error)) error {
	return a.audit.Change(ctx, activity.CommandLine, do)
}

// organizationOf returns the organization of a project; "" if there is none.
func (a *Accounts) organizationOf(ctx context.Context, project int64) string {
	p, err := a.Project(ctx, project)
	if err != nil {
		return ""
	}
	return p.OrganizationID
}

// organizationOfUser returns the organization of a user that has one; else "".
func (a *Accounts) organizationOfUser(ctx context.Context, user int64) string {
	all, err := a.Organizations(ctx)
	if err != nil {
		return ""
	}
	for _, o := range all {
		members, err := a.Members(ctx, o.ID)
		if err != nil {
			return ""
		}
		for _, m := range members {
			if m.User.ID == user {
				return o.ID
			}
		}
	}
	return ""
}

// userEvent is what was done to a user.
func (a *Accounts) userEvent(ctx context.Context, id int64, done string) *activity.Event {
	e := &activity.Event{Scope: activity.User, ItemID: activity.ItemID(id), Activity: done, OrganizationID: a.organizationOfUser(ctx, id)}
	if u, err := a.User(ctx, id); err == nil {
		e.Name = u.Email
	}
	return e
}

// NewProject creates a project with a key and returns its id and that key.
func (a *Accounts) NewProject(ctx context.Context, organization, name, timezone string) (id int64, key string, err error) {
	err = a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		p, k, err := a.CreateProject(ctx, auth.NewProject{OrganizationID: organization, Name: name, Timezone: timezone})
		id, key = p.ID, k.Key
		return &activity.Event{
			Scope: activity.Project, ItemID: activity.ItemID(p.ID), Activity: activity.Created, Name: p.Name, ProjectID: p.ID, OrganizationID: p.OrganizationID,
		}, err
	})
	return id, key, err
}

// RevokeProject closes a project.
func (a *Accounts) RevokeProject(ctx context.Context, id int64) error {
	return a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		e := &activity.Event{
			Scope: activity.Project, ItemID: activity.ItemID(id), Activity: activity.Deleted, ProjectID: id, OrganizationID: a.organizationOf(ctx, id),
		}
		return e, a.Service.RevokeProject(ctx, id)
	})
}

// NewUser creates a user and returns the id. level is member, admin or owner;
// operator also grants the right to administer the server.
func (a *Accounts) NewUser(ctx context.Context, organization, email, name, level string, operator bool) (id int64, err error) {
	levels := map[string]int{"member": auth.LevelMember, "admin": auth.LevelAdmin, "owner": auth.LevelOwner}
	err = a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		u, err := a.CreateUser(ctx, auth.NewUser{Email: email, FirstName: name, OrganizationID: organization, Level: levels[level], Operator: operator})
		id = u.ID
		return &activity.Event{
			Scope: activity.User, ItemID: activity.ItemID(u.ID), Activity: activity.Created, Name: u.Email, OrganizationID: organization,
			After: userRights{level, operator},
		}, err
	})
	return id, err
}

// userRights are the rights of a user in the activity log.
type userRights struct {
	Level    string `json:"level,omitempty"`
	Operator bool   `json:"operator"`
}

// RevokeUser revokes the access of a user.
func (a *Accounts) RevokeUser(ctx context.Context, id int64) error {
	return a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		return a.userEvent(ctx, id, activity.Deleted), a.Service.RevokeUser(ctx, id)
	})
}

// NewLink makes a link that signs a user in once or, with reset, lets the user choose a
// password. It returns the token of the link and its end.
func (a *Accounts) NewLink(ctx context.Context, email string, lifetime time.Duration, reset bool) (token string, expires time.Time, err error) {
	err = a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		done := "sign_in_link"
		if reset {
			done = "password_reset_link"
		}
		var id int64
		token, expires, id, err = signin.NewLinkIn(ctx, a.db, lifetime, email, reset)
		return a.userEvent(ctx, id, done), err
	})
	return token, expires, err
}

// SetOperator grants or revokes the operator right of a user.
func (a *Accounts) SetOperator(ctx context.Context, id int64, operator bool) error {
	return a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		e := a.userEvent(ctx, id, activity.Updated)
		e.Before, e.After = userRights{Operator: !operator}, userRights{Operator: operator}
		return e, a.Service.SetOperator(ctx, id, operator)
	})
}

// NewProjectKey creates a project key, or stores the given one, and returns it.
func (a *Accounts) NewProjectKey(ctx context.Context, project int64, label, key string) (text string, err error) {
	err = a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		k, err := a.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: project, Label: label, Key: key})
		text = k.Key
		return a.keyEvent(ctx, project, k.ID, label, activity.Created), err
	})
	return text, err
}

func (a *Accounts) keyEvent(ctx context.Context, project, id int64, label, done string) *activity.Event {
	return &activity.Event{
		Scope: activity.ProjectKey, ItemID: activity.ItemID(id), Activity: done, Name: label, ProjectID: project, OrganizationID: a.organizationOf(ctx, project),
	}
}

// RevokeProjectKey revokes a project key.
func (a *Accounts) RevokeProjectKey(ctx context.Context, project, id int64) error {
	return a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		return a.keyEvent(ctx, project, id, "", activity.Deleted), a.Service.RevokeProjectKey(ctx, project, id)
	})
}

// NewPersonalKey creates a personal key and returns its secret, which is not
// stored. A zero expires makes a key without an end.
func (a *Accounts) NewPersonalKey(ctx context.Context, user int64, label string, scopes []string, expires time.Time) (secret string, err error) {
	err = a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		k, text, err := a.CreatePersonalKey(ctx, auth.NewPersonalKey{UserID: user, Label: label, Scopes: scopes, ExpiresAt: expires})
		secret = text
		return &activity.Event{
			Scope: activity.PersonalKey, ItemID: activity.ItemID(k.ID), Activity: activity.Created, Name: k.Label, OrganizationID: k.OrganizationID,
		}, err
	})
	return secret, err
}

// RevokePersonalKey revokes a personal key of a user.
func (a *Accounts) RevokePersonalKey(ctx context.Context, user, id int64) error {
	return a.change(ctx, func(ctx context.Context) (*activity.Event, error) {
		k, err := a.PersonalKey(ctx, user, id)
		if err != nil {
			return nil, err
		}
		return &activity.Event{
			Scope: activity.PersonalKey, ItemID: activity.ItemID(id), Activity: activity.Deleted, Name: k.Label, OrganizationID: k.OrganizationID,
		}, a.Service.RevokePersonalKey(ctx, user, id)
	})
}

// NewSecretKey creates a named secret key of a project and returns its secret, which
// is not stored. A zero expires makes a key without an end.
func (a *Accounts) NewSecretKey(ctx context.Context, project int64, label string, scopes []string, expires time.Time) (string, error) {
	if _, err := a.Project(ctx, project); err != nil {
		return "", err
	}
	in := secretkey.NewKey{ProjectID: project, Label: label, Scopes: scopes, ExpiresAt: expires}
	_, secret, err := a.SecretKeys.Create(ctx, in, a.noteSecretKey(ctx, project))
	return secret, err
}

// RotateSecret replaces the secret of a key, or for key 0 the rotating secret of the
// project, and returns the new one.
func (a *Accounts) RotateSecret(ctx context.Context, project, key int64) (secret string, err error) {
	if _, err := a.Project(ctx, project); err != nil {
		return "", err
	}
	note := a.noteSecretKey(ctx, project)
	if key == 0 {
		_, secret, err = a.SecretKeys.Rotate(ctx, project, 0, note)
	} else {
		_, secret, err = a.SecretKeys.Roll(ctx, project, key, note)
	}
	return secret, err
}

// RevokeSecretKey revokes a secret key of a project.
func (a *Accounts) RevokeSecretKey(ctx context.Context, project, key int64) error {
	return a.SecretKeys.Revoke(ctx, project, key, a.noteSecretKey(ctx, project))
}

// noteSecretKey returns a function that adds a change of a secret key to the
// activity log.
func (a *Accounts) noteSecretKey(ctx context.Context, project int64) secretkey.Note {
	organization := a.organizationOf(ctx, project)
	return func(ctx context.Context, before, after *secretkey.Key) error {
		e := accounts.SecretKeyEvent(before, after)
		e.OrganizationID = organization
		return a.audit.Add(ctx, activity.CommandLine, e)
	}
}

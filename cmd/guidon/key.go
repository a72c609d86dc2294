package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/app"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a project key (--project), a secret key (--project and --secret) or a personal key (--user) and print it."`
	List   keyListCmd   `cmd:"" help:"List the keys of a project or of a user."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key by its id."`
	Rotate keyRotateCmd `cmd:"" help:"Replace the secret of a project, or of one of its secret keys, and print the new one."`
}

// keyOwner selects the keys of a project or of a user.
type keyOwner struct {
	Project int64 `help:"Id of the project that owns the key." xor:"owner"`
	User    int64 `help:"Id of the user who owns the key." xor:"owner"`
}

func (o keyOwner) AfterApply() error {
	if o.Project == 0 && o.User == 0 {
		return errors.New("name the owner of the key: --project or --user")
	}
	return nil
}

// errSecretOfUser rejects --secret without --project.
var errSecretOfUser = errors.New("--secret is for keys of a project: name it with --project")

type keyCreateCmd struct {
	keyOwner `embed:""`
	Label    string   `default:"command line" help:"Label of the key."`
	Secret   bool     `help:"Create a secret key (phs_) of the project, for server-side clients."`
	Key      string   `help:"Existing project key to take over, for clients that already send it."`
	Scopes   []string `default:"*" help:"Scopes, for example feature_flag:read; by default * for everything the user may do, and feature_flag:read for a secret key."`
	Expires  string   `help:"Time after which a personal key or a secret key is refused: 90d, 12h or a date such as 2027-01-31." placeholder:"TIME"`
}

func (c keyCreateCmd) Run(e *env) error {
	if c.Secret && c.Project == 0 {
		return errSecretOfUser
	}
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error {
		var key string
		expires, err := parseExpiry(c.Expires, time.Now())
		if err != nil {
			return err
		}
		if c.Project != 0 && c.Expires != "" && !c.Secret {
			return errors.New("--expires is for personal keys and secret keys: a project key is public, and events sent after its end would be lost")
		}
		switch {
		case c.Secret:
			if slices.Equal(c.Scopes, []string{"*"}) {
				c.Scopes = []string{"feature_flag:read"}
			}
			key, err = a.NewSecretKey(ctx, c.Project, c.Label, c.Scopes, expires)
		case c.Project != 0:
			key, err = a.NewProjectKey(ctx, c.Project, c.Label, c.Key)
		default:
			key, err = a.NewPersonalKey(ctx, c.User, c.Label, c.Scopes, expires)
			if err == nil && slices.Contains(c.Scopes, "*") {
				fmt.Fprintln(os.Stderr, "guidon: the key has the scope *: it may do everything that its user may do; --scopes narrows it")
			}
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(e.out, key)
		return err
	})
}

type keyListCmd struct {
	keyOwner `embed:""`
	Secret   bool `help:"List the secret keys of the project."`
}

func (c keyListCmd) Run(e *env) error {
	if c.Secret && c.Project == 0 {
		return errSecretOfUser
	}
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error {
		var rows [][]any
		if c.Secret {
			keys, err := a.SecretKeys.List(ctx, c.Project)
			if err != nil {
				return err
			}
			for _, k := range keys {
				rows = append(rows, []any{k.ID, k.Mask, k.Label, k.Kind, strings.Join(k.Scopes, ","), formatTime(k.CreatedAt), formatTime(k.LastUsedAt), formatTime(k.ExpiresAt), keyState(k.RevokedAt, k.ExpiresAt)})
			}
			return e.table("ID KEY LABEL KIND SCOPES CREATED USED EXPIRES STATE", rows)
		}
		if c.Project != 0 {
			keys, err := a.ProjectKeys(ctx, c.Project)
			if err != nil {
				return err
			}
			for _, k := range keys {
				rows = append(rows, []any{k.ID, k.Key, k.Label, formatTime(k.CreatedAt), keyState(k.RevokedAt)})
			}
			return e.table("ID KEY LABEL CREATED STATE", rows)
		}
		keys, err := a.PersonalKeys(ctx, c.User)
		if err != nil {
			return err
		}
		for _, k := range keys {
			rows = append(rows, []any{k.ID, k.Mask, k.Label, strings.Join(k.Scopes, ","), formatTime(k.CreatedAt), formatTime(k.LastUsedAt), formatTime(k.ExpiresAt), keyState(k.RevokedAt, k.ExpiresAt)})
		}
		return e.table("ID KEY LABEL SCOPES CREATED USED EXPIRES STATE", rows)
	})
}

type keyRevokeCmd struct {
	keyOwner `embed:""`
	Secret   bool  `help:"Revoke a secret key of the project."`
	ID       int64 `arg:"" help:"Id of the key, from key list."`
}

func (c keyRevokeCmd) Run(e *env) error {
	if c.Secret && c.Project == 0 {
		return errSecretOfUser
	}
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error {
		if c.Secret {
			return a.RevokeSecretKey(ctx, c.Project, c.ID)
		}
		if c.Project != 0 {
			return a.RevokeProjectKey(ctx, c.Project, c.ID)
		}
		return a.RevokePersonalKey(ctx, c.User, c.ID)
	})
}

type keyRotateCmd struct {
	Project int64 `required:"" help:"Id of the project."`
	ID      int64 `arg:"" optional:"" help:"Id of a secret key, from key list --secret; its old secret is invalid at once. Without it the secret of the project is rotated, and the old one stays valid as the backup."`
}

func (c keyRotateCmd) Run(e *env) error {
	return e.withAdmin(func(ctx context.Context, a *app.Admin) error {
		secret, err := a.RotateSecret(ctx, c.Project, c.ID)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(e.out, secret)
		return err
	})
}

// parseExpiry reads a number of days (90d), a duration (12h) or a date in UTC; an
// empty text is no end.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= 36500 {
			return now.AddDate(0, 0, n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--expires: %q is not a time such as 90d, 12h or 2027-01-31", text)
}

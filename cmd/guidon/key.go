package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/guidonhq/guidon/app"
)

type keyVerb struct {
	Create keyCreateVerb `cmd:"" help:"Create a project key (--project) or a personal key (--user) and print it."`
	List   keyListVerb   `cmd:"" help:"List the keys of a project or of a user."`
	Revoke keyRevokeVerb `cmd:"" help:"Revoke a key by its id."`
}

// owner says whose keys are meant.
type owner struct {
	Project int64 `help:"Id of the project whose key is meant." xor:"owner"`
	User    int64 `help:"Id of the user whose key is meant." xor:"owner"`
}

func (o owner) AfterApply() error {
	if o.Project == 0 && o.User == 0 {
		return errors.New("say whose key: --project or --user")
	}
	return nil
}

type keyCreateVerb struct {
	owner  `embed:""`
	Label  string   `default:"command line" help:"What the key is for."`
	Key    string   `help:"A project key that clients already carry, to keep it."`
	Scopes []string `default:"*" help:"Scopes of a personal key, for example feature_flag:read."`
}

func (v keyCreateVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) error {
		var key string
		var err error
		if v.Project != 0 {
			key, err = a.NewProjectKey(ctx, v.Project, v.Label, v.Key)
		} else {
			key, err = a.NewPersonalKey(ctx, v.User, v.Label, v.Scopes)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(e.out, key)
		return err
	})
}

type keyListVerb struct {
	owner `embed:""`
}

func (v keyListVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) error {
		var rows [][]any
		if v.Project != 0 {
			keys, err := a.ProjectKeys(ctx, v.Project)
			if err != nil {
				return err
			}
			for _, k := range keys {
				rows = append(rows, []any{k.ID, k.Key, k.Label, day(k.CreatedAt), alive(k.RevokedAt)})
			}
			return e.table("ID KEY LABEL CREATED STATE", rows)
		}
		keys, err := a.PersonalKeys(ctx, v.User)
		if err != nil {
			return err
		}
		for _, k := range keys {
			rows = append(rows, []any{k.ID, k.Mask, k.Label, strings.Join(k.Scopes, ","), day(k.CreatedAt), day(k.LastUsedAt), alive(k.RevokedAt)})
		}
		return e.table("ID KEY LABEL SCOPES CREATED USED STATE", rows)
	})
}

type keyRevokeVerb struct {
	owner `embed:""`
	ID    int64 `arg:"" help:"Id of the key, from key list."`
}

func (v keyRevokeVerb) Run(e *env) error {
	return e.within(func(ctx context.Context, a *app.Admin) error {
		if v.Project != 0 {
			return a.RevokeProjectKey(ctx, v.Project, v.ID)
		}
		return a.RevokePersonalKey(ctx, v.User, v.ID)
	})
}

package accounts

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/guidonhq/guidon/app"
)

// databaseKeys are the keys of an owner in the database.
type databaseKeys struct {
	ctx    context.Context //nolint:containedctx // the value lives for one command
	admin  *app.Admin
	owner  keyOwner
	secret bool
}

func (k databaseKeys) list() (rows []keyRow, err error) {
	switch {
	case k.secret:
		all, err := k.admin.SecretKeys.List(k.ctx, k.owner.Project)
		for _, s := range all {
			rows = append(rows, keyRow{
				ID: s.ID, Mask: s.Mask, Label: s.Label, Kind: string(s.Kind), Scopes: s.Scopes,
				Created: text(s.CreatedAt), Used: text(s.LastUsedAt), Expires: text(s.ExpiresAt), Revoked: text(s.RevokedAt),
			})
		}
		return rows, err
	case k.owner.Project != 0:
		all, err := k.admin.ProjectKeys(k.ctx, k.owner.Project)
		for _, p := range all {
			rows = append(rows, keyRow{ID: p.ID, Key: p.Key, Label: p.Label, Created: text(p.CreatedAt), Revoked: text(p.RevokedAt)})
		}
		return rows, err
	}
	all, err := k.admin.PersonalKeys(k.ctx, k.owner.User)
	for _, p := range all {
		rows = append(rows, keyRow{
			ID: p.ID, Mask: p.Mask, Label: p.Label, Scopes: p.Scopes,
			Created: text(p.CreatedAt), Used: text(p.LastUsedAt), Expires: text(p.ExpiresAt), Revoked: text(p.RevokedAt),
		})
	}
	return rows, err
}

// text returns a time as the API does, "" for the zero time.
func text(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func (k databaseKeys) create(in newKey) (string, error) {
	switch {
	case k.secret:
		return k.admin.NewSecretKey(k.ctx, k.owner.Project, in.label, in.scopes, in.expires)
	case k.owner.Project != 0:
		return k.admin.NewProjectKey(k.ctx, k.owner.Project, in.label, in.text)
	}
	key, err := k.admin.NewPersonalKey(k.ctx, k.owner.User, in.label, in.scopes, in.expires)
	if err == nil && slices.Contains(in.scopes, "*") {
		fmt.Fprintln(os.Stderr, "guidon: the key has the scope *: it may do everything that its user may do; --scopes narrows it")
	}
	return key, err
}

func (k databaseKeys) revoke(id int64) error {
	switch {
	case k.secret:
		return k.admin.RevokeSecretKey(k.ctx, k.owner.Project, id)
	case k.owner.Project != 0:
		return k.admin.RevokeProjectKey(k.ctx, k.owner.Project, id)
	}
	return k.admin.RevokePersonalKey(k.ctx, k.owner.User, id)
}

func (k databaseKeys) rotate(id int64) (string, error) {
	return k.admin.RotateSecret(k.ctx, k.owner.Project, id)
}

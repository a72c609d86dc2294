package accounts

import (
	"context"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/secretkey"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

const secretKeysPath = projectPath + "/project_secret_api_keys"

// secretKeyRoutes registers the named secret keys of a project and its rotating
// secret. Admins change them.
func (h *HTTP) secretKeyRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, secretKeysPath, "project:read", h.listSecretKeys)
	g.Manage(fiber.MethodPost, secretKeysPath, "project:write", adminsOnly(h.createSecretKey))
	g.Manage(fiber.MethodGet, secretKeysPath+"/activity", "project:read", h.secretKeyActivity)
	g.Manage(fiber.MethodGet, secretKeysPath+"/:id", "project:read", h.readSecretKey)
	g.Manage(fiber.MethodPatch, secretKeysPath+"/:id", "project:write", adminsOnly(h.changeSecretKey))
	g.Manage(fiber.MethodDelete, secretKeysPath+"/:id", "project:write", adminsOnly(h.revokeSecretKey))
	g.Manage(fiber.MethodPost, secretKeysPath+"/:id/roll", "project:write", adminsOnly(h.rollSecretKey))
	g.Manage(fiber.MethodPatch, projectPath+"/rotate_secret_token", "project:write", adminsOnly(h.rotateSecret))
	g.Manage(fiber.MethodPatch, projectPath+"/delete_secret_token_backup", "project:write", adminsOnly(h.deleteBackup))
}

// secretKeyView is the JSON form of a named secret key. Value is the secret in the
// answer that creates or replaces it, else null.
type secretKeyView struct {
	ID           int64      `json:"id"`
	Label        string     `json:"label"`
	Value        *string    `json:"value"`
	MaskValue    string     `json:"mask_value"`
	Scopes       []string   `json:"scopes"`
	CreatedBy    *auth.User `json:"created_by"`
	CreatedAt    web.Time   `json:"created_at"`
	LastUsedAt   web.Time   `json:"last_used_at"`
	LastRolledAt web.Time   `json:"last_rolled_at"`
	ExpiresAt    web.Time   `json:"expires_at"`
}

// showSecretKeys returns a function from keys to their JSON form.
func (h *HTTP) showSecretKeys(ctx context.Context, keys ...secretkey.Key) (func(secretkey.Key) secretKeyView, error) {
	makers := make([]int64, len(keys))
	for i, k := range keys {
		makers[i] = k.CreatedBy
	}
	users, err := h.auth.UsersByID(ctx, makers)
	return func(k secretkey.Key) secretKeyView {
		v := secretKeyView{
			ID: k.ID, Label: k.Label, MaskValue: k.Mask, Scopes: k.Scopes, CreatedAt: web.Time(k.CreatedAt),
			LastUsedAt: web.Time(k.LastUsedAt), LastRolledAt: web.Time(k.RolledAt), ExpiresAt: web.Time(k.ExpiresAt),
		}
		if u, ok := users[k.CreatedBy]; ok {
			v.CreatedBy = &u
		}
		return v
	}, err
}

// answerSecretKey answers with a key, and with its secret if it was just made.
func (h *HTTP) answerSecretKey(c *web.Call, k secretkey.Key, secret string, err error) error {
	if err != nil {
		return err
	}
	show, err := h.showSecretKeys(c.UserContext(), k)
	if err != nil {
		return err
	}
	v := show(k)
	if secret != "" {
		v.Value = &secret
	}
	return web.JSON(c.Ctx, v)
}

func (h *HTTP) listSecretKeys(c *web.Call) error {
	all, err := h.auth.SecretKeys.List(c.UserContext(), c.Project.ID)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(k secretkey.Key) bool { return k.Kind != secretkey.Named })
	show, err := h.showSecretKeys(c.UserContext(), query.Cut(all, c.Page().Limit, c.Page().Offset)...)
	return list(c, show, all, err)
}

func (h *HTTP) createSecretKey(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	in := secretkey.NewKey{
		ProjectID: c.Project.ID, CreatedBy: c.Principal.User.ID,
		Label: body.String("label", web.Required).Value, Scopes: body.Strings("scopes", web.Required).Value,
		ExpiresAt: keyEnd(body).Or(c.Principal.KeyExpiresAt),
	}
	if err := body.Err(); err != nil {
		return err
	}
	if err := requireSecretRights(c.Principal, in.Scopes, in.ExpiresAt); err != nil {
		return err
	}
	k, secret, err := h.auth.SecretKeys.Create(c.UserContext(), in, h.noteSecretKey(c))
	if err == nil {
		c.Status(fiber.StatusCreated)
	}
	return h.answerSecretKey(c, k, secret, err)
}

// requireSecretRights fails unless the key of the caller has the scopes and is valid
// until expires or longer: a key makes no key that may do more than itself.
func requireSecretRights(caller *auth.Principal, scopes []string, expires time.Time) error {
	for _, s := range scopes {
		// A scope that no personal key can have gives no rights.
		if s == "feature_flag:read" && !caller.HasScope(s) {
			return caller.RequireScope(s)
		}
	}
	if end := caller.KeyExpiresAt; !end.IsZero() && (expires.IsZero() || expires.After(end)) {
		return fault.New(fault.Forbidden, "permission_denied", "An API key with an end cannot make a key that is valid longer.")
	}
	return nil
}

func (h *HTTP) secretKey(c *web.Call) (secretkey.Key, error) {
	id, err := idOf(c, "id")
	if err != nil {
		return secretkey.Key{}, err
	}
	k, err := h.auth.SecretKeys.Get(c.UserContext(), c.Project.ID, id)
	if err == nil && k.Kind != secretkey.Named {
		err = errNotFound
	}
	return k, err
}

func (h *HTTP) readSecretKey(c *web.Call) error {
	k, err := h.secretKey(c)
	return h.answerSecretKey(c, k, "", err)
}

func (h *HTTP) changeSecretKey(c *web.Call) error {
	k, err := h.secretKey(c)
	if err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	change := secretkey.Change{Label: given(body.String("label"))}
	if scopes := body.Strings("scopes"); scopes.Set {
		change.Scopes = append([]string{}, scopes.Value...)
		k.Scopes = change.Scopes
	}
	if at := keyEnd(body); at.Set {
		change.ExpiresAt = &at.Value
		k.ExpiresAt = at.Value
	}
	if err := body.Err(); err != nil {
		return err
	}
	if change.Scopes != nil || change.ExpiresAt != nil {
		if err := requireSecretRights(c.Principal, k.Scopes, k.ExpiresAt); err != nil {
			return err
		}
	}
	k, err = h.auth.SecretKeys.Update(c.UserContext(), c.Project.ID, k.ID, change, h.noteSecretKey(c))
	return h.answerSecretKey(c, k, "", err)
}

func (h *HTTP) rollSecretKey(c *web.Call) error {
	k, err := h.secretKey(c)
	if err != nil {
		return err
	}
	if err := requireSecretRights(c.Principal, k.Scopes, k.ExpiresAt); err != nil {
		return err
	}
	k, secret, err := h.auth.SecretKeys.Roll(c.UserContext(), c.Project.ID, k.ID, h.noteSecretKey(c))
	return h.answerSecretKey(c, k, secret, err)
}

func (h *HTTP) revokeSecretKey(c *web.Call) error {
	k, err := h.secretKey(c)
	if err != nil {
		return err
	}
	return noContent(c, h.auth.SecretKeys.Revoke(c.UserContext(), c.Project.ID, k.ID, h.noteSecretKey(c)))
}

// rotateSecret answers with the project, in which secret_api_token is the new secret.
func (h *HTTP) rotateSecret(c *web.Call) error {
	if err := requireSecretRights(c.Principal, []string{"feature_flag:read"}, time.Time{}); err != nil {
		return err
	}
	_, secret, err := h.auth.SecretKeys.Rotate(c.UserContext(), c.Project.ID, c.Principal.User.ID, h.noteSecretKey(c))
	if err != nil {
		return err
	}
	return h.answerProjectWith(c, c.Project, secret)
}

func (h *HTTP) deleteBackup(c *web.Call) error {
	if err := h.auth.SecretKeys.DeleteBackup(c.UserContext(), c.Project.ID, h.noteSecretKey(c)); err != nil {
		return err
	}
	return h.answerProject(c, c.Project)
}

// secretKeyState is what users decide about a secret key, as the activity log
// compares it. The mask tells that a secret was replaced.
type secretKeyState struct {
	Label     string    `json:"label"`
	Kind      string    `json:"kind"`
	MaskValue string    `json:"mask_value"`
	Scopes    []string  `json:"scopes"`
	ExpiresAt *web.Time `json:"expires_at"`
}

func stateOfSecretKey(k *secretkey.Key) secretKeyState {
	s := secretKeyState{Label: k.Label, Kind: string(k.Kind), MaskValue: k.Mask, Scopes: k.Scopes}
	if !k.ExpiresAt.IsZero() {
		at := web.Time(k.ExpiresAt)
		s.ExpiresAt = &at
	}
	return s
}

// noteSecretKey returns a function that adds a change to the activity log.
func (h *HTTP) noteSecretKey(c *web.Call) secretkey.Note {
	return func(ctx context.Context, before, after *secretkey.Key) error {
		return h.audit.Add(ctx, c.Principal, SecretKeyEvent(before, after))
	}
}

// SecretKeyEvent is the change of a secret key; before is nil for a new one, after
// for a revoked one.
func SecretKeyEvent(before, after *secretkey.Key) *activity.Event {
	k, done := after, activity.Created
	switch {
	case after == nil:
		k, done = before, activity.Deleted
	case before != nil:
		done = activity.Updated
	}
	e := &activity.Event{Scope: activity.SecretKey, ItemID: activity.ItemID(k.ID), Activity: done, Name: k.Label, ProjectID: k.ProjectID}
	if before != nil && after != nil {
		e.Before, e.After = stateOfSecretKey(before), stateOfSecretKey(after)
	}
	return e
}

func (h *HTTP) secretKeyActivity(c *web.Call) error {
	return activity.Answer(c, func(ctx context.Context, limit, offset int) ([]activity.Entry, int, error) {
		if h.audit == nil {
			return nil, 0, nil
		}
		return h.audit.Log().Find(ctx, activity.Query{ProjectID: c.Project.ID, Scope: activity.SecretKey, Limit: limit, Offset: offset})
	})
}

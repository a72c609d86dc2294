package accounts

import (
	"context"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

func (h *HTTP) personalKeyRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, personalKeysPath, "user:read", h.listPersonalKeys)
	g.Manage(fiber.MethodPost, personalKeysPath, "user:write", h.createPersonalKey)
	// No scope: every key may read itself.
	g.Manage(fiber.MethodGet, personalKeysPath+"/"+auth.Current, "", h.readPersonalKey)
	g.Manage(fiber.MethodGet, personalKeysPath+"/:id", "user:read", h.readPersonalKey)
	g.Manage(fiber.MethodPatch, personalKeysPath+"/:id", "user:write", h.changePersonalKey)
	g.Manage(fiber.MethodDelete, personalKeysPath+"/:id", "user:write", h.revokePersonalKey)
}

// personalKeyView is the JSON form of a personal key. Value is the secret in the
// answer to its creation, else null.
type personalKeyView struct {
	ID             int64    `json:"id"`
	Label          string   `json:"label"`
	Value          *string  `json:"value"`
	MaskValue      string   `json:"mask_value"`
	OrganizationID string   `json:"organization_id"`
	Scopes         []string `json:"scopes"`
	ProjectIDs     []int64  `json:"project_ids"`
	CreatedAt      web.Time `json:"created_at"`
	LastUsedAt     web.Time `json:"last_used_at"`
	ExpiresAt      web.Time `json:"expires_at"`
}

func showPersonalKey(k auth.PersonalKey) personalKeyView {
	v := personalKeyView{
		ID: k.ID, Label: k.Label, MaskValue: k.Mask, OrganizationID: k.OrganizationID, Scopes: k.Scopes,
		ProjectIDs: k.ProjectIDs, CreatedAt: web.Time(k.CreatedAt), LastUsedAt: web.Time(k.LastUsedAt),
		ExpiresAt: web.Time(k.ExpiresAt),
	}
	if v.ProjectIDs == nil {
		v.ProjectIDs = []int64{}
	}
	return v
}

// listPersonalKeys lists the valid keys of the user in the organization of the
// key.
func (h *HTTP) listPersonalKeys(c *web.Call) error {
	all, err := h.auth.PersonalKeys(c.UserContext(), c.Principal.User.ID)
	all = slices.DeleteFunc(all, func(k auth.PersonalKey) bool {
		return !k.RevokedAt.IsZero() || k.OrganizationID != c.Principal.OrganizationID
	})
	return list(c, showPersonalKey, all, err)
}

func (h *HTTP) createPersonalKey(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	in := auth.NewPersonalKey{
		UserID: c.Principal.User.ID, OrganizationID: c.Principal.OrganizationID, By: c.Principal,
		Label: body.String("label", web.Required).Value, Scopes: body.Strings("scopes", web.Required).Value,
		// By default the new key has the same projects as a restricted key.
		ProjectIDs: body.Ints("project_ids").Or(c.Principal.ProjectIDs),
		ExpiresAt:  keyEnd(body).Value,
	}
	if err := body.Err(); err != nil {
		return err
	}
	var k auth.PersonalKey
	var secret string
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		k, secret, err = h.auth.CreatePersonalKey(ctx, in)
		e := keyEvent(k, activity.Created)
		e.After = stateOfKey(k)
		return e, err
	})
	if err != nil {
		return err
	}
	v := showPersonalKey(k)
	v.Value = &secret
	return created(c, v)
}

// personalKey returns the key that the path names, @current or a number.
func (h *HTTP) personalKey(c *web.Call) (auth.PersonalKey, error) {
	id := c.Principal.KeyID
	if c.Params("id", auth.Current) != auth.Current {
		var err error
		if id, err = idOf(c, "id"); err != nil {
			return auth.PersonalKey{}, err
		}
	}
	k, err := h.auth.PersonalKey(c.UserContext(), c.Principal.User.ID, id)
	if err == nil && k.OrganizationID != c.Principal.OrganizationID {
		err = errNotFound
	}
	return k, err
}

func (h *HTTP) readPersonalKey(c *web.Call) error {
	k, err := h.personalKey(c)
	return answer(c, showPersonalKey, k, err)
}

func (h *HTTP) changePersonalKey(c *web.Call) error {
	k, err := h.personalKey(c)
	if err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	change := auth.PersonalKeyChange{Label: given(body.String("label")), By: c.Principal}
	if scopes := body.Strings("scopes"); scopes.Set {
		change.Scopes = append([]string{}, scopes.Value...)
	}
	if at := keyEnd(body); at.Set {
		change.ExpiresAt = &at.Value
	}
	if projects := body.Ints("project_ids"); projects.Set {
		change.ProjectIDs = append([]int64{}, projects.Value...)
	}
	if err := body.Err(); err != nil {
		return err
	}
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		before := stateOfKey(k)
		k, err = h.auth.UpdatePersonalKey(ctx, c.Principal.User.ID, k.ID, change)
		e := keyEvent(k, activity.Updated)
		e.Before, e.After = before, stateOfKey(k)
		return e, err
	})
	return answer(c, showPersonalKey, k, err)
}

func (h *HTTP) revokePersonalKey(c *web.Call) error {
	k, err := h.personalKey(c)
	if err != nil {
		return err
	}
	if !c.Principal.Covers(k.Scopes, k.ProjectIDs) {
		return fault.New(fault.Forbidden, "permission_denied", "An API key can only revoke keys that may do nothing it may not do itself.")
	}
	return noContent(c, h.change(c, func(ctx context.Context) (*activity.Event, error) {
		return keyEvent(k, activity.Deleted), h.auth.RevokePersonalKey(ctx, c.Principal.User.ID, k.ID)
	}))
}

package auth

import (
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
)

// CreatePersonalKey creates a key of a user and returns it with the secret, which
// cannot be read again.
func (m *keyManager) CreatePersonalKey(ctx context.Context, in NewPersonalKey) (PersonalKey, string, error) {
	label, err := apikey.CheckName("label", in.Label)
	if err != nil {
		return PersonalKey{}, "", err
	}
	scopes, err := apikey.CheckScopes(in.Scopes)
	if err != nil {
		return PersonalKey{}, "", err
	}
	if in.ExpiresAt.IsZero() && in.By != nil {
		in.ExpiresAt = in.By.KeyExpiresAt
	}
	if err := checkExpiry(in.ExpiresAt); err != nil {
		return PersonalKey{}, "", err
	}
	secret, err := apikey.Personal(in.Secret)
	if err != nil {
		return PersonalKey{}, "", err
	}
	k := PersonalKey{
		UserID: in.UserID, OrganizationID: in.OrganizationID, Label: label, Mask: apikey.Mask(secret),
		Scopes: scopes, ProjectIDs: distinct(in.ProjectIDs), CreatedAt: now(), ExpiresAt: in.ExpiresAt.UTC(),
	}
	err = m.change(ctx, func(ctx context.Context) error {
		if err := m.checkOwners(ctx, &k); err != nil {
			return err
		}
		if !within(in.By, k) {
			return errKeyTooStrong
		}
		return m.store.addPersonalKey(ctx, &k, apikey.DigestOf(secret))
	})
	if err != nil {
		return PersonalKey{}, "", err
	}
	return k, secret, nil
}

// checkExpiry rejects a time that is over; the zero time is no end.
func checkExpiry(at time.Time) error {
	if !at.IsZero() && !at.After(time.Now()) {
		return fault.Field("expires_at", "invalid_input", "A key must expire in the future.")
	}
	return nil
}

// distinct returns ids sorted and without duplicates.
func distinct(ids []int64) []int64 { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// checkOwners checks that the user, organization and projects of the key belong
// together, and sets the organization if it is empty.
func (m *keyManager) checkOwners(ctx context.Context, k *PersonalKey) error {
	_, where, err := m.store.user(ctx, k.UserID)
	if err != nil {
		return invalidIfMissing(err, "user", "There is no such user.")
	}
	if k.OrganizationID == "" {
		k.OrganizationID = where.organizationID
	}
	if _, err := m.store.member(ctx, k.OrganizationID, k.UserID); err != nil {
		return invalidIfMissing(err, "organization_id", "The user is not a member of this organization.")
	}
	const attr, detail = "project_ids", "There is no such project in the organization."
	for _, id := range k.ProjectIDs {
		p, err := m.store.project(ctx, id)
		if err != nil {
			return invalidIfMissing(err, attr, detail)
		}
		if p.OrganizationID != k.OrganizationID {
			return invalidIfMissing(errNoProject, attr, detail)
		}
	}
	return nil
}

// UpdatePersonalKey changes a key of a user and returns the changed key; the
// secret stays the same. A revoked key is NotFound. It fails with Forbidden if
// c.By does not cover the key.
func (m *keyManager) UpdatePersonalKey(ctx context.Context, userID, id int64, c PersonalKeyChange) (PersonalKey, error) {
	var k PersonalKey
	err := m.change(ctx, func(ctx context.Context) (err error) {
		if k, err = m.store.personalKey(ctx, userID, id); err != nil {
			return err
		}
		if !within(c.By, k) {
			return errKeyTooStrong
		}
		if err := c.apply(&k); err != nil {
			return err
		}
		if c.ProjectIDs != nil {
			k.ProjectIDs = distinct(c.ProjectIDs)
			if err := m.checkOwners(ctx, &k); err != nil {
				return err
			}
		}
		if !within(c.By, k) {
			return errKeyTooStrong
		}
		return m.store.savePersonalKey(ctx, k)
	})
	if err != nil {
		return PersonalKey{}, err
	}
	return k, nil
}

func (c PersonalKeyChange) apply(k *PersonalKey) (err error) {
	if c.Label != nil {
		if k.Label, err = apikey.CheckName("label", *c.Label); err != nil {
			return err
		}
	}
	if c.ExpiresAt != nil {
		if err := checkExpiry(*c.ExpiresAt); err != nil {
			return err
		}
		k.ExpiresAt = c.ExpiresAt.UTC()
	}
	if c.Scopes != nil {
		k.Scopes, err = apikey.CheckScopes(c.Scopes)
	}
	return err
}

// errKeyTooStrong rejects requests about a key that the caller does not cover.
var errKeyTooStrong = fault.New(fault.Forbidden, "permission_denied",
	"An API key can only manage keys that may do nothing it may not do itself.")

// within reports whether by covers k. A nil by covers every key.
func within(by *Principal, k PersonalKey) bool {
	return by == nil || (by.OrganizationID == k.OrganizationID && by.Covers(k.Scopes, k.ProjectIDs) && by.endsAfter(k.ExpiresAt))
}

// endsAfter reports whether the key of p is valid until at or longer; the zero time
// is no end.
func (p *Principal) endsAfter(at time.Time) bool {
	return p.KeyExpiresAt.IsZero() || (!at.IsZero() && !at.After(p.KeyExpiresAt))
}

// PersonalKey returns a key of a user that is not revoked, NotFound when there
// is none with that id.
func (m *keyManager) PersonalKey(ctx context.Context, userID, id int64) (PersonalKey, error) {
	return m.store.personalKey(ctx, userID, id)
}

// PersonalKeys lists the keys of a user by id, revoked ones too.
func (m *keyManager) PersonalKeys(ctx context.Context, userID int64) ([]PersonalKey, error) {
	return m.store.personalKeys(ctx, userID)
}

// RevokePersonalKey invalidates a key of a user. It fails with NotFound for a
// revoked key, or if the user has no key with that id.
func (m *keyManager) RevokePersonalKey(ctx context.Context, userID, id int64) error {
	return m.change(ctx, func(ctx context.Context) error { return m.store.revokePersonalKey(ctx, userID, id) })
}

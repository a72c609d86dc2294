// Package secretkey manages the secret keys of projects.
//
// A secret key (phs_) lets a server-side client read the definitions of flags and
// remote configurations of one project. It belongs to the project, not to a user,
// and stays valid when the user who made it leaves. There are two kinds: up to
// MaxNamed keys with a label, scopes and an optional end, and the one rotating
// secret of the project, with an active and a backup key. A rotation makes the
// active key the backup, so that clients change their key without an outage.
//
// Keys are stored as digests and shown once, when they are made. The package does
// not check who may manage keys; core/auth finds the holder of a key with Find.
package secretkey

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

// MaxNamed is the maximum number of named keys of a project that are not revoked.
const MaxNamed = 50

// Kind tells named keys from the rotating secret of a project.
type Kind string

// The kinds of keys. A project has at most one active and one backup key.
const (
	Named  Kind = "named"
	Active Kind = "active"
	Backup Kind = "backup"
)

// Key is a secret key without the secret. LastUsedAt is zero for a key that was
// never used, and up to a minute old; ExpiresAt is zero for a key without an end,
// RolledAt for one whose secret was never replaced, RevokedAt while it is valid.
type Key struct {
	ID         int64
	ProjectID  int64
	Kind       Kind
	Label      string
	Mask       string
	Scopes     []string
	CreatedBy  int64 // a user, 0 for none
	CreatedAt  time.Time
	LastUsedAt time.Time
	ExpiresAt  time.Time
	RolledAt   time.Time
	RevokedAt  time.Time
}

// NewKey describes a named key to create. A zero ExpiresAt is no end.
type NewKey struct {
	ProjectID int64
	Label     string
	Scopes    []string
	ExpiresAt time.Time
	CreatedBy int64
}

// Change is a change of a named key; nil keeps a field.
type Change struct {
	Label     *string
	Scopes    []string
	ExpiresAt *time.Time // zero: no end
}

// Note runs in the transaction of a change, which fails if it fails. before is nil
// for a new key, after for a revoked one. A nil Note is none.
type Note func(ctx context.Context, before, after *Key) error

func (n Note) run(ctx context.Context, before, after *Key) error {
	if n == nil {
		return nil
	}
	return n(ctx, before, after)
}

// Manager changes keys. Its methods may be called concurrently.
type Manager struct {
	Store
	change func(ctx context.Context, fn func(ctx context.Context) error) error
}

// NewManager returns a manager of the keys in d. change runs a function in a
// transaction after which keys in memory are read again; transactions do not
// overlap.
func NewManager(d *db.DB, change func(ctx context.Context, fn func(ctx context.Context) error) error) *Manager {
	return &Manager{Store: Store{d}, change: change}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Create creates a named key and returns it with the secret, which cannot be read
// again. The project must exist. It fails with Invalid for the field that is wrong,
// and limit_reached if the project has MaxNamed keys.
func (m *Manager) Create(ctx context.Context, in NewKey, note Note) (Key, string, error) {
	k := Key{ProjectID: in.ProjectID, Kind: Named, CreatedBy: in.CreatedBy, CreatedAt: now(), ExpiresAt: in.ExpiresAt.UTC()}
	err := Change{Label: &in.Label, Scopes: append([]string{}, in.Scopes...), ExpiresAt: &in.ExpiresAt}.apply(&k)
	if err != nil {
		return Key{}, "", err
	}
	secret := apikey.New(apikey.SecretPrefix)
	k.Mask = apikey.Mask(secret)
	err = m.change(ctx, func(ctx context.Context) error {
		n, err := m.countNamed(ctx, in.ProjectID)
		if err != nil {
			return err
		}
		if n >= MaxNamed {
			return fault.Newf(fault.Invalid, "limit_reached", "A project has at most %d secret keys. Revoke one that is no longer used.", MaxNamed)
		}
		if err := m.add(ctx, &k, apikey.DigestOf(secret)); err != nil {
			return err
		}
		return note.run(ctx, nil, &k)
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// Update changes a named key and returns the changed key; the secret stays the
// same. It fails with NotFound for a revoked key.
func (m *Manager) Update(ctx context.Context, projectID, id int64, c Change, note Note) (Key, error) {
	var k Key
	err := m.change(ctx, func(ctx context.Context) (err error) {
		if k, err = m.Get(ctx, projectID, id); err != nil {
			return err
		}
		if k.Kind != Named {
			return errNotFound
		}
		before := k
		if err := c.apply(&k); err != nil {
			return err
		}
		if err := m.save(ctx, k); err != nil {
			return err
		}
		return note.run(ctx, &before, &k)
	})
	if err != nil {
		return Key{}, err
	}
	return k, nil
}

func (c Change) apply(k *Key) (err error) {
	if c.Label != nil {
		if k.Label, err = apikey.CheckName("label", *c.Label); err != nil {
			return err
		}
	}
	if c.Scopes != nil {
		if k.Scopes, err = apikey.CheckSecretScopes(c.Scopes); err != nil {
			return err
		}
	}
	if c.ExpiresAt != nil {
		if at := *c.ExpiresAt; !at.IsZero() && !at.After(time.Now()) {
			return fault.Field("expires_at", "invalid_input", "A key must expire in the future.")
		}
		k.ExpiresAt = c.ExpiresAt.UTC()
	}
	return nil
}

// Roll replaces the secret of a named key: the old one is invalid at once. It
// returns the key with the new secret.
func (m *Manager) Roll(ctx context.Context, projectID, id int64, note Note) (Key, string, error) {
	secret := apikey.New(apikey.SecretPrefix)
	var k Key
	err := m.change(ctx, func(ctx context.Context) (err error) {
		if k, err = m.Get(ctx, projectID, id); err != nil {
			return err
		}
		if k.Kind != Named {
			return errNotFound
		}
		before := k
		k.Mask, k.RolledAt = apikey.Mask(secret), now()
		if err := m.roll(ctx, k, apikey.DigestOf(secret)); err != nil {
			return err
		}
		return note.run(ctx, &before, &k)
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// Revoke invalidates a key of any kind. It fails with NotFound for a revoked key.
func (m *Manager) Revoke(ctx context.Context, projectID, id int64, note Note) error {
	return m.change(ctx, func(ctx context.Context) error {
		k, err := m.Get(ctx, projectID, id)
		if err != nil {
			return err
		}
		if err := m.revoke(ctx, k.ID); err != nil {
			return err
		}
		return note.run(ctx, &k, nil)
	})
}

package secretkey

import (
	"context"

	"github.com/guidonhq/guidon/core/auth/apikey"
)

// Rotation is the rotating secret of a project: nil for a key that it does not
// have.
type Rotation struct{ Active, Backup *Key }

// Rotation returns the rotating secret of a project.
func (m *Manager) Rotation(ctx context.Context, projectID int64) (Rotation, error) {
	keys, err := m.List(ctx, projectID)
	var r Rotation
	for i := range keys {
		switch keys[i].Kind {
		case Active:
			r.Active = &keys[i]
		case Backup:
			r.Backup = &keys[i]
		case Named:
		}
	}
	return r, err
}

// Rotate makes a new active key and returns it with the secret, which cannot be
// read again. The active key becomes the backup, and the backup is revoked.
func (m *Manager) Rotate(ctx context.Context, projectID, by int64, note Note) (Key, string, error) {
	secret := apikey.New(apikey.SecretPrefix)
	k := Key{
		ProjectID: projectID, Kind: Active, Label: "Project secret", Mask: apikey.Mask(secret),
		Scopes: []string{"feature_flag:read"}, CreatedBy: by, CreatedAt: now(),
	}
	err := m.change(ctx, func(ctx context.Context) error {
		r, err := m.Rotation(ctx, projectID)
		if err != nil {
			return err
		}
		if r.Backup != nil {
			if err := m.revokeNoted(ctx, *r.Backup, note); err != nil {
				return err
			}
		}
		if r.Active != nil {
			backup := *r.Active
			backup.Kind = Backup
			if err := m.setKind(ctx, backup.ID, Backup); err != nil {
				return err
			}
			if err := note.run(ctx, r.Active, &backup); err != nil {
				return err
			}
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

// DeleteBackup revokes the backup key, if there is one.
func (m *Manager) DeleteBackup(ctx context.Context, projectID int64, note Note) error {
	return m.change(ctx, func(ctx context.Context) error {
		r, err := m.Rotation(ctx, projectID)
		if err != nil || r.Backup == nil {
			return err
		}
		return m.revokeNoted(ctx, *r.Backup, note)
	})
}

func (m *Manager) revokeNoted(ctx context.Context, k Key, note Note) error {
	if err := m.revoke(ctx, k.ID); err != nil {
		return err
	}
	return note.run(ctx, &k, nil)
}

package standby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/secretkey"
	"github.com/guidonhq/guidon/core/db"
)

// store reads the keys of all accounts.
type store struct{ db *db.DB }

// version returns the number that grows with each change of the accounts.
func (s store) version(ctx context.Context) (n int64, err error) {
	err = s.db.Read(ctx).NewSelect().Table("accounts_version").Column("version").Where("id = 1").Scan(ctx, &n)
	if err != nil {
		err = fmt.Errorf("read the version of the accounts: %w", err)
	}
	return n, err
}

func (s store) projectKeys(ctx context.Context) ([]projectKey, error) {
	var rows []struct {
		Key       string
		ProjectID int64
	}
	err := s.db.Read(ctx).NewSelect().Table("project_keys").Column("key", "project_id").Where("revoked_at IS NULL").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read project keys: %w", err)
	}
	out := make([]projectKey, len(rows))
	for i, r := range rows {
		out[i] = projectKey{Digest: digestOf(r.Key), ProjectID: r.ProjectID}
	}
	return out, nil
}

func (s store) personalKeys(ctx context.Context) ([]personalKey, error) {
	var rows []struct {
		ID, UserID, CurrentProjectID int64
		Hash, OrganizationID, Scopes string
		ProjectIDs                   string `bun:"project_ids"`
		Level                        int
		ExpiresAt                    int64
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("personal_keys AS k").
		ColumnExpr("k.id, k.user_id, k.hash, k.organization_id, k.scopes, k.project_ids, m.level").
		ColumnExpr("coalesce(u.current_project_id, 0) AS current_project_id, coalesce(k.expires_at, 0) AS expires_at").
		Join("JOIN users AS u ON u.id = k.user_id AND u.revoked_at IS NULL").
		Join("JOIN organization_members AS m ON m.user_id = k.user_id AND m.organization_id = k.organization_id").
		Where("k.revoked_at IS NULL").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read personal keys: %w", err)
	}
	out := make([]personalKey, len(rows))
	for i, r := range rows {
		out[i] = personalKey{Digest: r.Hash, KeyID: r.ID, UserID: r.UserID, OrganizationID: r.OrganizationID, Level: r.Level, CurrentProjectID: r.CurrentProjectID}
		if r.ExpiresAt != 0 {
			out[i].ExpiresAt = time.UnixMicro(r.ExpiresAt).UTC()
		}
		if err := errors.Join(json.Unmarshal([]byte(r.Scopes), &out[i].Scopes), json.Unmarshal([]byte(r.ProjectIDs), &out[i].ProjectIDs)); err != nil {
			return nil, fmt.Errorf("read personal key %d: %w", r.ID, err)
		}
	}
	return out, nil
}

// secretKeys reads the secret keys of projects in the form of personal keys.
func (s store) secretKeys(ctx context.Context) ([]personalKey, error) {
	holders, err := secretkey.NewStore(s.db).Holders(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]personalKey, len(holders))
	for i, h := range holders {
		p := auth.SecretPrincipal(h)
		out[i] = personalKey{
			Digest: h.Digest, KeyID: p.KeyID, OrganizationID: p.OrganizationID, Scopes: p.Scopes, ProjectIDs: p.ProjectIDs,
			CurrentProjectID: p.CurrentProjectID, ExpiresAt: p.KeyExpiresAt, Secret: true,
		}
	}
	return out, nil
}

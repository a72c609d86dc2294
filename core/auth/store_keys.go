package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/auth/secretkey"
)

// keyStore is the table of personal keys.
type keyStore struct{ table }

type personalKeyRow struct {
	bun.BaseModel  `bun:"table:personal_keys,alias:k"`
	ID             int64 `bun:",pk,autoincrement"`
	UserID         int64
	OrganizationID string
	Label          string
	Hash           string
	Mask           string
	Scopes         string
	ProjectIDs     string `bun:"project_ids"`
	CreatedAt      int64
	LastUsedAt     int64 `bun:",nullzero"`
	ExpiresAt      int64 `bun:",nullzero"`
	RevokedAt      int64 `bun:",nullzero"`
}

func (s keyStore) addPersonalKey(ctx context.Context, k *PersonalKey, d apikey.Digest) error {
	row := &personalKeyRow{
		UserID: k.UserID, OrganizationID: k.OrganizationID, Label: k.Label, Hash: d.String(), Mask: k.Mask,
		Scopes: jsonList(k.Scopes), ProjectIDs: jsonList(k.ProjectIDs), CreatedAt: k.CreatedAt.UnixMicro(),
		ExpiresAt: microsOrNull(k.ExpiresAt),
	}
	_, err := s.insert(ctx, row).Exec(ctx)
	k.ID = row.ID
	return found(err, "add personal key")
}

// validHashes returns the digests of all personal keys that are valid at a time.
func (s keyStore) validHashes(ctx context.Context, at time.Time) (map[string]struct{}, error) {
	var hashes []string
	err := s.db.Read(ctx).NewSelect().Model((*personalKeyRow)(nil)).Column("hash").
		Where("k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)", at.UnixMicro()).Scan(ctx, &hashes)
	if err != nil {
		return nil, fmt.Errorf("read the digests of personal keys: %w", err)
	}
	out := make(map[string]struct{}, len(hashes))
	for _, h := range hashes {
		out[h] = struct{}{}
	}
	return out, nil
}

func (s keyStore) personalKeys(ctx context.Context, userID int64) ([]PersonalKey, error) {
	var rows []personalKeyRow
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("k.user_id = ?", userID).Order("k.id").Scan(ctx)
	if err != nil {
		return nil, found(err, "list personal keys")
	}
	out := make([]PersonalKey, len(rows))
	for i, r := range rows {
		if out[i], err = r.key(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r personalKeyRow) key() (PersonalKey, error) {
	k := PersonalKey{
		ID: r.ID, UserID: r.UserID, OrganizationID: r.OrganizationID, Label: r.Label, Mask: r.Mask,
		CreatedAt: at(r.CreatedAt), LastUsedAt: at(r.LastUsedAt), RevokedAt: at(r.RevokedAt),
		ExpiresAt: at(r.ExpiresAt),
	}
	if err := parseLists(r.Scopes, r.ProjectIDs, &k.Scopes, &k.ProjectIDs); err != nil {
		return PersonalKey{}, fmt.Errorf("read personal key %d: %w", r.ID, err)
	}
	return k, nil
}

// personalKey reads a key that is not revoked.
func (s keyStore) personalKey(ctx context.Context, userID, id int64) (PersonalKey, error) {
	var row personalKeyRow
	err := s.db.Read(ctx).NewSelect().Model(&row).
		Where("k.id = ? AND k.user_id = ? AND k.revoked_at IS NULL", id, userID).Scan(ctx)
	if err != nil {
		return PersonalKey{}, found(err, "read personal key")
	}
	return row.key()
}

func (s keyStore) savePersonalKey(ctx context.Context, k PersonalKey) error {
	r, err := s.db.Write(ctx).NewUpdate().Table("personal_keys").Set("label = ?", k.Label).
		Set("scopes = ?", jsonList(k.Scopes)).Set("project_ids = ?", jsonList(k.ProjectIDs)).
		Set("expires_at = nullif(?, 0)", microsOrNull(k.ExpiresAt)).Where("id = ?", k.ID).Exec(ctx)
	return touched(r, err, "save personal key")
}

func (s keyStore) revokePersonalKey(ctx context.Context, userID, id int64) error {
	r, err := s.db.Write(ctx).NewUpdate().Table("personal_keys").Set("revoked_at = ?", now().UnixMicro()).
		Where("id = ? AND user_id = ? AND revoked_at IS NULL", id, userID).Exec(ctx)
	return touched(r, err, "revoke personal key")
}

// principal reads the principal of a key that is not revoked, also of an expired
// one.
func (s keyStore) principal(ctx context.Context, d apikey.Digest) (*Principal, error) {
	var row struct {
		userColumns
		KeyID            int64
		OrganizationID   string
		Level            int
		Scopes           string
		ProjectIDs       string `bun:"project_ids"`
		CurrentProjectID int64
		ExpiresAt        int64
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("personal_keys AS k").ColumnExpr(userColumnList).
		ColumnExpr("coalesce(u.current_project_id, 0) AS current_project_id, coalesce(k.expires_at, 0) AS expires_at").
		ColumnExpr("k.id AS key_id, k.organization_id, k.scopes, k.project_ids, m.level").
		Join("JOIN users AS u ON u.id = k.user_id AND u.revoked_at IS NULL").
		Join("JOIN organization_members AS m ON m.user_id = k.user_id AND m.organization_id = k.organization_id").
		Where("k.hash = ? AND k.revoked_at IS NULL", d.String()).Scan(ctx, &row)
	if err != nil {
		return nil, found(err, "find personal key")
	}
	p := &Principal{
		User: row.user(), OrganizationID: row.OrganizationID, OrgLevel: row.Level,
		CurrentProjectID: row.CurrentProjectID, KeyID: row.KeyID,
		KeyExpiresAt: at(row.ExpiresAt),
	}
	if err := parseLists(row.Scopes, row.ProjectIDs, &p.Scopes, &p.ProjectIDs); err != nil {
		return nil, fmt.Errorf("read personal key %d: %w", row.KeyID, err)
	}
	return p, nil
}

// secretPrincipal reads the principal that stands for the project of a secret key
// that is not revoked, also of an expired one.
func (s keyStore) secretPrincipal(ctx context.Context, d apikey.Digest) (*Principal, error) {
	k, err := secretkey.NewStore(s.db).Find(ctx, d)
	if err != nil {
		return nil, err
	}
	return SecretPrincipal(k), nil
}

// saveKeyUsage advances the last use of keys. It leaves the version of the
// accounts unchanged: the snapshot does not depend on it.
func (s keyStore) saveKeyUsage(ctx context.Context, last map[int64]time.Time) error {
	return s.db.Tx(ctx, func(ctx context.Context) error {
		// In the order of the ids, so that two nodes cannot deadlock.
		for _, id := range slices.Sorted(maps.Keys(last)) {
			if id < 0 {
				if err := secretkey.NewStore(s.db).MarkUsed(ctx, -id, last[id]); err != nil {
					return err
				}
				continue
			}
			when := last[id].UnixMicro()
			_, err := s.db.Write(ctx).NewUpdate().Table("personal_keys").Set("last_used_at = ?", when).
				Where("id = ? AND (last_used_at IS NULL OR last_used_at < ?)", id, when).Exec(ctx)
			if err != nil {
				return fmt.Errorf("mark personal key %d as used: %w", id, err)
			}
		}
		return nil
	})
}

// microsOrNull returns unix microseconds; 0, which is stored as NULL, for the zero
// time.
func microsOrNull(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// jsonList returns the JSON array of values, [] for none.
func jsonList[T string | int64](values []T) string {
	if len(values) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(values) // strings and numbers always encode
	return string(text)
}

func parseLists(scopes, projectIDs string, toScopes *[]string, toIDs *[]int64) error {
	if err := json.Unmarshal([]byte(scopes), toScopes); err != nil {
		return fmt.Errorf("read scopes: %w", err)
	}
	if err := json.Unmarshal([]byte(projectIDs), toIDs); err != nil {
		return fmt.Errorf("read project ids: %w", err)
	}
	return nil
}

package secretkey

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

// Store is the table of secret keys. Its methods use the transaction in their
// context.
type Store struct{ db *db.DB }

// NewStore returns the table in d.
func NewStore(d *db.DB) Store { return Store{d} }

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

type row struct {
	bun.BaseModel `bun:"table:secret_keys,alias:k"`

	ID         int64 `bun:",pk,autoincrement"`
	ProjectID  int64
	Kind       Kind
	Label      string
	Hash       string
	Mask       string
	Scopes     string
	CreatedBy  int64 `bun:",nullzero"`
	CreatedAt  int64
	LastUsedAt int64 `bun:",nullzero"`
	ExpiresAt  int64 `bun:",nullzero"`
	RolledAt   int64 `bun:",nullzero"`
	RevokedAt  int64 `bun:",nullzero"`
}

func (r row) key() (Key, error) {
	k := Key{
		ID: r.ID, ProjectID: r.ProjectID, Kind: r.Kind, Label: r.Label, Mask: r.Mask, CreatedBy: r.CreatedBy, CreatedAt: at(r.CreatedAt),
		LastUsedAt: at(r.LastUsedAt), ExpiresAt: at(r.ExpiresAt), RolledAt: at(r.RolledAt), RevokedAt: at(r.RevokedAt),
	}
	if err := json.Unmarshal([]byte(r.Scopes), &k.Scopes); err != nil {
		return Key{}, fmt.Errorf("read the scopes of secret key %d: %w", r.ID, err)
	}
	return k, nil
}

func (s Store) add(ctx context.Context, k *Key, d apikey.Digest) error {
	r := &row{
		ProjectID: k.ProjectID, Kind: k.Kind, Label: k.Label, Hash: d.String(), Mask: k.Mask, Scopes: list(k.Scopes),
		CreatedBy: k.CreatedBy, CreatedAt: k.CreatedAt.UnixMicro(), ExpiresAt: micros(k.ExpiresAt),
	}
	_, err := s.db.Write(ctx).NewInsert().Model(r).Exec(ctx)
	k.ID = r.ID
	return failed(err, "add secret key")
}

// List returns the keys of a project that are not revoked, by id.
func (s Store) List(ctx context.Context, projectID int64) ([]Key, error) {
	var rows []row
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("k.project_id = ? AND k.revoked_at IS NULL", projectID).Order("k.id").Scan(ctx)
	if err != nil {
		return nil, failed(err, "list secret keys")
	}
	return keys(rows)
}

func keys(rows []row) (out []Key, err error) {
	out = make([]Key, len(rows))
	for i, r := range rows {
		if out[i], err = r.key(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Get returns a key of a project that is not revoked, or NotFound.
func (s Store) Get(ctx context.Context, projectID, id int64) (Key, error) {
	var r row
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("k.id = ? AND k.project_id = ? AND k.revoked_at IS NULL", id, projectID).Scan(ctx)
	if err != nil {
		return Key{}, failed(err, "read secret key")
	}
	return r.key()
}

// Holder is a valid key with the organization of its project.
type Holder struct {
	Key
	Digest         string // in hexadecimal
	OrganizationID string
}

// Find returns the key with the digest, also an expired one. It fails with NotFound
// for a revoked key or project.
func (s Store) Find(ctx context.Context, d apikey.Digest) (Holder, error) {
	found, err := s.holders(ctx, d.String())
	if err == nil && len(found) == 0 {
		err = errNotFound
	}
	if err != nil {
		return Holder{}, err
	}
	return found[0], nil
}

// Holders returns every key that is not revoked.
func (s Store) Holders(ctx context.Context) ([]Holder, error) { return s.holders(ctx, "") }

func (s Store) holders(ctx context.Context, digest string) ([]Holder, error) {
	var rows []struct {
		row
		OrganizationID string
	}
	q := s.db.Read(ctx).NewSelect().TableExpr("secret_keys AS k").ColumnExpr("k.*, p.organization_id").
		Join("JOIN projects AS p ON p.id = k.project_id AND p.revoked_at IS NULL").Where("k.revoked_at IS NULL")
	if digest != "" {
		q = q.Where("k.hash = ?", digest)
	}
	if err := q.Scan(ctx, &rows); err != nil {
		return nil, failed(err, "find secret keys")
	}
	out := make([]Holder, len(rows))
	for i, r := range rows {
		k, err := r.key()
		if err != nil {
			return nil, err
		}
		out[i] = Holder{Key: k, Digest: r.Hash, OrganizationID: r.OrganizationID}
	}
	return out, nil
}

func (s Store) countNamed(ctx context.Context, projectID int64) (int, error) {
	n, err := s.db.Read(ctx).NewSelect().Table("secret_keys").
		Where("project_id = ? AND kind = ? AND revoked_at IS NULL", projectID, Named).Count(ctx)
	return int(n), failed(err, "count secret keys")
}

func (s Store) save(ctx context.Context, k Key) error {
	_, err := s.db.Write(ctx).NewUpdate().Table("secret_keys").Set("label = ?", k.Label).Set("scopes = ?", list(k.Scopes)).
		Set("expires_at = nullif(?, 0)", micros(k.ExpiresAt)).Where("id = ?", k.ID).Exec(ctx)
	return failed(err, "save secret key")
}

func (s Store) roll(ctx context.Context, k Key, d apikey.Digest) error {
	_, err := s.db.Write(ctx).NewUpdate().Table("secret_keys").Set("hash = ?", d.String()).Set("mask = ?", k.Mask).
		Set("rolled_at = ?", k.RolledAt.UnixMicro()).Where("id = ?", k.ID).Exec(ctx)
	return failed(err, "replace secret key")
}

func (s Store) setKind(ctx context.Context, id int64, kind Kind) error {
	_, err := s.db.Write(ctx).NewUpdate().Table("secret_keys").Set("kind = ?", kind).Where("id = ?", id).Exec(ctx)
	return failed(err, "rotate secret key")
}

func (s Store) revoke(ctx context.Context, id int64) error {
	_, err := s.db.Write(ctx).NewUpdate().Table("secret_keys").Set("revoked_at = ?", now().UnixMicro()).Where("id = ?", id).Exec(ctx)
	return failed(err, "revoke secret key")
}

// MarkUsed advances the last use of a key.
func (s Store) MarkUsed(ctx context.Context, id int64, when time.Time) error {
	_, err := s.db.Write(ctx).NewUpdate().Table("secret_keys").Set("last_used_at = ?", when.UnixMicro()).
		Where("id = ? AND (last_used_at IS NULL OR last_used_at < ?)", id, when.UnixMicro()).Exec(ctx)
	return failed(err, "mark secret key as used")
}

func failed(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return errNotFound
	}
	return db.Away(fmt.Errorf("%s: %w", doing, err))
}

func at(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func list(scopes []string) string {
	text, _ := json.Marshal(scopes) // strings always encode
	return string(text)
}

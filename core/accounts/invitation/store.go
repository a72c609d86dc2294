package invitation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
)

// store is the table of invitations.
type store struct{ db *db.DB }

type row struct {
	bun.BaseModel  `bun:"table:invitations,alias:i"`
	ID             string `bun:",pk"`
	OrganizationID string
	Email          string
	FirstName      string
	Level          int
	Hash           string
	Scopes         string
	CreatedBy      int64 `bun:",nullzero"`
	CreatedAt      int64
	ExpiresAt      int64
	UsedAt         int64 `bun:",nullzero"`
	EmailState     string
}

func (r *row) invitation() (Invitation, error) {
	i := Invitation{
		ID: r.ID, OrganizationID: r.OrganizationID, Email: r.Email, FirstName: r.FirstName, Level: r.Level, CreatedBy: r.CreatedBy,
		CreatedAt: time.UnixMicro(r.CreatedAt).UTC(), ExpiresAt: time.UnixMicro(r.ExpiresAt).UTC(), EmailState: r.EmailState,
	}
	if err := json.Unmarshal([]byte(r.Scopes), &i.Scopes); err != nil {
		return i, fmt.Errorf("read invitation %s: %w", r.ID, err)
	}
	return i, nil
}

func (s store) add(ctx context.Context, i Invitation, token apikey.Digest) error {
	scopes, err := json.Marshal(i.Scopes)
	if err != nil {
		return fmt.Errorf("add invitation: %w", err)
	}
	r := &row{
		ID: i.ID, OrganizationID: i.OrganizationID, Email: i.Email, FirstName: i.FirstName, Level: i.Level, Hash: token.String(),
		Scopes: string(scopes), CreatedBy: i.CreatedBy, CreatedAt: i.CreatedAt.UnixMicro(), ExpiresAt: i.ExpiresAt.UnixMicro(),
	}
	if i.EmailState != EmailOff {
		r.EmailState = i.EmailState
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(r).Exec(ctx); err != nil {
		return fmt.Errorf("add invitation: %w", err)
	}
	return nil
}

// list returns the open invitations of an organization, the newest first.
func (s store) list(ctx context.Context, organization string) ([]Invitation, error) {
	var rows []row
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("organization_id = ? AND used_at IS NULL", organization).
		OrderExpr("created_at DESC, id DESC").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list invitations: %w", err)
	}
	out := make([]Invitation, len(rows))
	for n := range rows {
		if out[n], err = rows[n].invitation(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// open returns an open invitation with the digest of its token, errNotFound without one.
func (s store) open(ctx context.Context, id string) (Invitation, string, error) {
	if uuid.Validate(id) != nil { // databases refuse text with NUL or invalid UTF-8
		return Invitation{}, "", errNotFound
	}
	var r row
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("id = ? AND used_at IS NULL", id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return Invitation{}, "", errNotFound
	}
	if err != nil {
		return Invitation{}, "", fmt.Errorf("read invitation: %w", err)
	}
	i, err := r.invitation()
	return i, r.Hash, err
}

// use marks an open invitation as used. It returns false if another request was first.
func (s store) use(ctx context.Context, id string, at time.Time) (bool, error) {
	return s.touched(s.db.Write(ctx).NewUpdate().Table("invitations").Set("used_at = ?", at.UnixMicro()).
		Where("id = ? AND used_at IS NULL", id).Exec(ctx))
}

// setEmailState stores what became of the e-mail with an invitation.
func (s store) setEmailState(ctx context.Context, id, state string) error {
	_, err := s.touched(s.db.Write(ctx).NewUpdate().Table("invitations").Set("email_state = ?", state).Where("id = ?", id).Exec(ctx))
	return err
}

// remove deletes an open invitation of an organization. It returns false without one.
func (s store) remove(ctx context.Context, organization, id string) (bool, error) {
	return s.touched(s.db.Write(ctx).NewDelete().Table("invitations").
		Where("organization_id = ? AND id = ? AND used_at IS NULL", organization, id).Exec(ctx))
}

// removeFor deletes the open invitations of an address in an organization.
func (s store) removeFor(ctx context.Context, organization, email string) error {
	_, err := s.touched(s.db.Write(ctx).NewDelete().Table("invitations").
		Where("organization_id = ? AND email = ? AND used_at IS NULL", organization, email).Exec(ctx))
	return err
}

// taken reports whether a user, revoked or not, has the address.
func (s store) taken(ctx context.Context, email string) (bool, error) {
	found, err := s.db.Read(ctx).NewSelect().Table("users").Where("email = ?", email).Exists(ctx)
	if err != nil {
		return false, fmt.Errorf("find user of an invitation: %w", err)
	}
	return found, nil
}

func (s store) touched(r interface{ RowsAffected() (int64, error) }, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("change invitation: %w", err)
	}
	n, err := r.RowsAffected()
	return n > 0, errors.Join(err)
}

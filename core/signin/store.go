package signin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
)

// store has the tables of passwords and links. Its methods use the transaction in their
// context.
type store struct{ db *db.DB }

// account is a user that is not revoked.
type account struct {
	ID    int64
	Email string
	Hash  string // of the password; "": none
	// ChangedAt is when the password was set, in microseconds; 0 without one.
	ChangedAt int64
	// IsVerified reports whether the person has proven to have the address.
	IsVerified bool
}

const accountQuery = `SELECT u.id, u.email, coalesce(p.hash, '') AS hash, coalesce(p.changed_at, 0), u.is_email_verified FROM users AS u
LEFT JOIN user_passwords AS p ON p.user_id = u.id WHERE u.revoked_at IS NULL AND `

// byEmail returns the account with an address, the zero account without one.
func (s store) byEmail(ctx context.Context, email string) (account, error) {
	return s.account(ctx, accountQuery+"u.email = ?", email)
}

// byID returns an account, the zero account without one.
func (s store) byID(ctx context.Context, id int64) (account, error) {
	return s.account(ctx, accountQuery+"u.id = ?", id)
}

func (s store) account(ctx context.Context, query string, arg any) (a account, err error) {
	err = s.db.Read(ctx).NewRaw(query, arg).Scan(ctx, &a.ID, &a.Email, &a.Hash, &a.ChangedAt, &a.IsVerified)
	if errors.Is(err, sql.ErrNoRows) {
		return account{}, nil
	}
	if err != nil {
		return account{}, fmt.Errorf("find account: %w", err)
	}
	return a, nil
}

// organization returns the organization that a user works in; "" if the user is in none.
func (s store) organization(ctx context.Context, userID int64) (id string, err error) {
	err = s.db.Read(ctx).NewRaw(`SELECT m.organization_id FROM organization_members AS m JOIN users AS u ON u.id = m.user_id WHERE m.user_id = ?
ORDER BY CASE m.organization_id WHEN u.current_organization_id THEN 0 ELSE 1 END, m.organization_id LIMIT 1`, userID).Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find organization of a user: %w", err)
	}
	return id, nil
}

type passwordRow struct {
	bun.BaseModel `bun:"table:user_passwords"`

	UserID    int64 `bun:",pk"`
	Hash      string
	ChangedAt int64
}

func (s store) setPassword(ctx context.Context, userID int64, hash string, now time.Time) error {
	_, err := s.db.Write(ctx).NewInsert().Model(&passwordRow{UserID: userID, Hash: hash, ChangedAt: now.UnixMicro()}).
		On("CONFLICT (user_id) DO UPDATE").Set("hash = EXCLUDED.hash, changed_at = EXCLUDED.changed_at").Exec(ctx)
	if err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return nil
}

// keepPassword returns false if the password of an account was set after the account was
// read. It stores a.Hash, which is another hash of the same password or the same one, so that
// until the end of the transaction of ctx no other one sets the password.
func (s store) keepPassword(ctx context.Context, a account) (bool, error) {
	if a.Hash == "" {
		now, err := s.byID(ctx, a.ID)
		return now.Hash == "", err
	}
	r, err := s.db.Write(ctx).NewUpdate().Table("user_passwords").Set("hash = ?", a.Hash).Where("user_id = ? AND changed_at = ?", a.ID, a.ChangedAt).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("keep password: %w", err)
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// dropPassword deletes the password of a user.
func (s store) dropPassword(ctx context.Context, userID int64) error {
	if _, err := s.db.Write(ctx).NewDelete().Table("user_passwords").Where("user_id = ?", userID).Exec(ctx); err != nil {
		return fmt.Errorf("delete password: %w", err)
	}
	return nil
}

type linkRow struct {
	bun.BaseModel `bun:"table:sign_in_links"`

	Hash      string `bun:",pk"`
	UserID    int64
	Kind      string
	CreatedAt int64
	ExpiresAt int64
	UsedAt    int64 `bun:",nullzero"`
}

func (s store) addLink(ctx context.Context, userID int64, kind string, d apikey.Digest, now, expires time.Time) error {
	_, err := s.db.Write(ctx).NewDelete().Table("sign_in_links").Where("expires_at < ?", now.UnixMicro()).Exec(ctx)
	if err == nil {
		r := &linkRow{Hash: d.String(), UserID: userID, Kind: kind, CreatedAt: now.UnixMicro(), ExpiresAt: expires.UnixMicro()}
		_, err = s.db.Write(ctx).NewInsert().Model(r).Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("add link: %w", err)
	}
	return nil
}

const openLink = "hash = ? AND kind = ? AND used_at IS NULL AND expires_at > ?"

// linkUser returns the user of a link that can be used, 0 without one.
func (s store) linkUser(ctx context.Context, kind string, d apikey.Digest, now time.Time) (id int64, err error) {
	err = s.db.Read(ctx).NewSelect().Table("sign_in_links").Column("user_id").Where(openLink, d.String(), kind, now.UnixMicro()).Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find link: %w", err)
	}
	return id, nil
}

// useLink marks a link as used. It returns false if it cannot be used (any more).
func (s store) useLink(ctx context.Context, kind string, d apikey.Digest, now time.Time) (bool, error) {
	r, err := s.db.Write(ctx).NewUpdate().Table("sign_in_links").Set("used_at = ?", now.UnixMicro()).Where(openLink, d.String(), kind, now.UnixMicro()).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("use link: %w", err)
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// dropLinks deletes the open links of a user.
func (s store) dropLinks(ctx context.Context, userID int64) error {
	if _, err := s.db.Write(ctx).NewDelete().Table("sign_in_links").Where("user_id = ?", userID).Exec(ctx); err != nil {
		return fmt.Errorf("delete links: %w", err)
	}
	return nil
}

// identityUser returns the user of an account at a provider, 0 without one.
func (s store) identityUser(ctx context.Context, issuer, subject string) (id int64, err error) {
	err = s.db.Read(ctx).NewSelect().Table("user_identities").Column("user_id").Where("issuer = ? AND subject = ?", issuer, subject).Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find identity: %w", err)
	}
	return id, nil
}

type identityRow struct {
	bun.BaseModel `bun:"table:user_identities"`

	Issuer    string `bun:",pk"`
	Subject   string `bun:",pk"`
	UserID    int64
	CreatedAt int64
}

func (s store) addIdentity(ctx context.Context, issuer, subject string, userID int64, now time.Time) error {
	_, err := s.db.Write(ctx).NewInsert().Model(&identityRow{Issuer: issuer, Subject: subject, UserID: userID, CreatedAt: now.UnixMicro()}).Exec(ctx)
	if err != nil {
		return fmt.Errorf("add identity: %w", err)
	}
	return nil
}

// membership is an organization of a user.
type membership struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Level int    `json:"level"`
}

func (s store) memberships(ctx context.Context, userID int64) (out []membership, err error) {
	err = s.db.Read(ctx).NewRaw(`SELECT o.id, o.name, m.level FROM organization_members AS m
JOIN organizations AS o ON o.id = m.organization_id WHERE m.user_id = ? ORDER BY o.created_at, o.id`, userID).Scan(ctx, &out)
	if err != nil {
		return nil, fmt.Errorf("list the organizations of a user: %w", err)
	}
	return out, nil
}

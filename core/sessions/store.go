package sessions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
)

// store is the table of sessions. Its methods use the transaction in their context.
type store struct{ db *db.DB }

type row struct {
	bun.BaseModel `bun:"table:sessions,alias:s"`

	ID             int64 `bun:",pk,autoincrement"`
	Hash           string
	UserID         int64
	OrganizationID string `bun:",nullzero"`
	Method         string
	UserAgent      string
	Client         string
	CreatedAt      int64
	LastSeenAt     int64
	ExpiresAt      int64
	RevokedAt      int64 `bun:",nullzero"`
}

func (r row) session() Session {
	return Session{
		ID: r.ID, UserID: r.UserID, OrganizationID: r.OrganizationID, Method: r.Method, UserAgent: r.UserAgent, Client: r.Client,
		CreatedAt: at(r.CreatedAt), LastSeenAt: at(r.LastSeenAt), ExpiresAt: at(r.ExpiresAt),
	}
}

func (st store) add(ctx context.Context, s *Session, d apikey.Digest) error {
	r := &row{
		Hash: d.String(), UserID: s.UserID, Method: s.Method, UserAgent: s.UserAgent, Client: s.Client,
		CreatedAt: s.CreatedAt.UnixMicro(), LastSeenAt: s.LastSeenAt.UnixMicro(), ExpiresAt: s.ExpiresAt.UnixMicro(),
	}
	if _, err := st.db.Write(ctx).NewInsert().Model(r).Exec(ctx); err != nil {
		return db.Away(fmt.Errorf("add session: %w", err))
	}
	s.ID = r.ID
	return nil
}

// byChoice orders the memberships of the user of a session: the organization of the session,
// else that of the user, else any one of the user.
const byChoice = ` ORDER BY CASE m.organization_id WHEN s.organization_id THEN 0 WHEN u.current_organization_id THEN 1 ELSE 2 END, m.organization_id
LIMIT 1`

// holderQuery reads a session with its user and the organization that it works in.
const holderQuery = `SELECT s.id, s.user_id, m.organization_id, s.method, s.user_agent, s.client, s.created_at, s.last_seen_at, s.expires_at,
	u.uuid, u.distinct_id, u.first_name, u.email, u.is_email_verified, u.operator, coalesce(u.current_project_id, 0), m.level
FROM sessions AS s
JOIN users AS u ON u.id = s.user_id AND u.revoked_at IS NULL
JOIN organization_members AS m ON m.user_id = s.user_id
WHERE s.hash = ? AND s.revoked_at IS NULL` + byChoice

// find returns a session that is not revoked, or errInvalid.
func (st store) find(ctx context.Context, d apikey.Digest) (Holder, error) {
	var r row
	p := &auth.Principal{Scopes: []string{"*"}}
	u := &p.User
	err := st.db.Read(ctx).NewRaw(holderQuery, d.String()).Scan(ctx,
		&r.ID, &r.UserID, &r.OrganizationID, &r.Method, &r.UserAgent, &r.Client, &r.CreatedAt, &r.LastSeenAt, &r.ExpiresAt,
		&u.UUID, &u.DistinctID, &u.FirstName, &u.Email, &u.IsEmailVerified, &u.Operator, &p.CurrentProjectID, &p.OrgLevel)
	if errors.Is(err, sql.ErrNoRows) {
		return Holder{}, errInvalid
	}
	if err != nil {
		return Holder{}, fmt.Errorf("find session: %w", err)
	}
	u.ID, p.OrganizationID, p.SessionID = r.UserID, r.OrganizationID, r.ID
	return Holder{Session: r.session(), Principal: p}, nil
}

// inOrganization selects the sessions that work in an organization.
const inOrganization = `s.user_id IN (SELECT user_id FROM organization_members WHERE organization_id = ?)
	AND (SELECT m.organization_id FROM organization_members AS m JOIN users AS u ON u.id = m.user_id WHERE m.user_id = s.user_id` + byChoice + `) = ?`

func (st store) list(ctx context.Context, now time.Time, idle time.Duration, where string, args ...any) ([]Session, error) {
	var rows []row
	err := st.db.Read(ctx).NewSelect().Model(&rows).Where(where, args...).
		Where("s.revoked_at IS NULL AND s.expires_at > ? AND s.last_seen_at > ?", now.UnixMicro(), now.Add(-idle).UnixMicro()).
		OrderExpr("s.last_seen_at DESC, s.id DESC").Scan(ctx)
	if err != nil {
		return nil, db.Away(fmt.Errorf("list sessions: %w", err))
	}
	out := make([]Session, len(rows))
	for i, r := range rows {
		out[i] = r.session()
	}
	return out, nil
}

func (st store) revoke(ctx context.Context, now time.Time, where string, args ...any) (int64, error) {
	r, err := st.db.Write(ctx).NewUpdate().Table("sessions").Set("revoked_at = ?", now.UnixMicro()).
		Where("revoked_at IS NULL").Where(where, args...).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("revoke sessions: %w", err)
	}
	return r.RowsAffected()
}

// touchAccounts increments the version of the accounts, which all nodes poll.
func (st store) touchAccounts(ctx context.Context) error {
	if _, err := st.db.Write(ctx).NewUpdate().Table("accounts_version").Set("version = version + 1").Where("id = 1").Exec(ctx); err != nil {
		return fmt.Errorf("increment the version of the accounts: %w", err)
	}
	return nil
}

// setOrganization returns false if the user of the session is not a member.
func (st store) setOrganization(ctx context.Context, id int64, organizationID string) (bool, error) {
	r, err := st.db.Write(ctx).NewUpdate().Table("sessions").Set("organization_id = ?", organizationID).
		Where("id = ? AND revoked_at IS NULL", id).
		Where("EXISTS (SELECT 1 FROM organization_members AS m WHERE m.organization_id = ? AND m.user_id = sessions.user_id)", organizationID).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("change the organization of a session: %w", err)
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// saveUsage advances the last requests of sessions.
func (st store) saveUsage(ctx context.Context, last map[int64]time.Time) error {
	return st.db.Tx(ctx, func(ctx context.Context) error {
		// In the order of the ids, so that two nodes cannot deadlock.
		for _, id := range slices.Sorted(maps.Keys(last)) {
			when := last[id].UnixMicro()
			_, err := st.db.Write(ctx).NewUpdate().Table("sessions").Set("last_seen_at = ?", when).Where("id = ? AND last_seen_at < ?", id, when).Exec(ctx)
			if err != nil {
				return fmt.Errorf("save the last request of session %d: %w", id, err)
			}
		}
		return nil
	})
}

// clean deletes what has ended before a time.
func (st store) clean(ctx context.Context, before time.Time, idle time.Duration) error {
	at := before.UnixMicro()
	_, err := st.db.Write(ctx).NewDelete().Table("sessions").
		Where("expires_at < ? OR revoked_at < ? OR last_seen_at < ?", at, at, before.Add(-idle).UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("delete ended sessions: %w", err)
	}
	return nil
}

// at returns the time of unix microseconds.
func at(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

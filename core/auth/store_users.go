package auth

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/fault"
)

// userStore is the table of users.
type userStore struct{ table }

// userColumnList selects userColumns from users AS u.
const userColumnList = "u.id, u.uuid, u.distinct_id, u.first_name, u.email, u.is_email_verified, u.operator"

type userColumns struct {
	ID              int64 `bun:",pk,autoincrement"`
	UUID            string
	DistinctID      string
	FirstName       string
	Email           string
	IsEmailVerified bool
	Operator        bool

	LastName           string    `bun:"-"`
	RoleAtOrganization *string   `bun:"-"`
	HedgehogConfig     *struct{} `bun:"-"`
}

func (c userColumns) user() User { return User(c) }

type userRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`
	userColumns
	CurrentOrganizationID string `bun:",nullzero"`
	CurrentProjectID      int64  `bun:",nullzero"`
	CreatedAt             int64
	RevokedAt             int64 `bun:",nullzero"`
}

var errEmailTaken = fault.Field("email", "unique", "There is already a user with this email address.")

// addUser sets u.ID. The user works in the organization.
func (s userStore) addUser(ctx context.Context, u *User, organizationID string) error {
	row := &userRow{userColumns: userColumns(*u), CurrentOrganizationID: organizationID, CreatedAt: now().UnixMicro()}
	_, err := s.insert(ctx, row).Exec(ctx)
	u.ID = row.ID
	return taken(err, "add user", errEmailTaken)
}

// workplace is the organization and project that a user works in.
type workplace struct {
	organizationID string
	projectID      int64
}

func (s userStore) user(ctx context.Context, id int64) (User, workplace, error) {
	var row userRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("u.id = ? AND u.revoked_at IS NULL", id).Scan(ctx)
	return row.user(), workplace{row.CurrentOrganizationID, row.CurrentProjectID}, found(err, "read user")
}

// users lists the users that are not revoked.
func (s userStore) users(ctx context.Context) ([]User, error) {
	return s.usersWhere(ctx, "u.revoked_at IS NULL")
}

// usersByID lists the given users, also revoked ones.
func (s userStore) usersByID(ctx context.Context, ids []int64) ([]User, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.usersWhere(ctx, "u.id IN ?", bun.Tuple(ids))
}

func (s userStore) usersWhere(ctx context.Context, where string, args ...any) ([]User, error) {
	var rows []userRow
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Where(where, args...).Order("u.id").Scan(ctx); err != nil {
		return nil, found(err, "list users")
	}
	out := make([]User, len(rows))
	for i, r := range rows {
		out[i] = r.user()
	}
	return out, nil
}

func (s userStore) saveUser(ctx context.Context, u User, currentProjectID int64) error {
	row := &userRow{userColumns: userColumns(u), CurrentProjectID: currentProjectID}
	r, err := s.db.Write(ctx).NewUpdate().Model(row).
		Column("first_name", "email", "is_email_verified", "current_project_id").WherePK().Exec(ctx)
	if err != nil {
		return taken(err, "save user", errEmailTaken)
	}
	return touched(r, nil, "save user")
}

func (s userStore) setOperator(ctx context.Context, id int64, operator bool) error {
	r, err := s.db.Write(ctx).NewUpdate().Table("users").Set("operator = ?", operator).
		Where("id = ? AND revoked_at IS NULL", id).Exec(ctx)
	return touched(r, err, "set the operator right of a user")
}

// revokeUser revokes the user and all keys of the user.
func (s userStore) revokeUser(ctx context.Context, id int64) error {
	when := now().UnixMicro()
	r, err := s.db.Write(ctx).NewUpdate().Table("users").Set("revoked_at = ?", when).
		Where("id = ? AND revoked_at IS NULL", id).Exec(ctx)
	if err := touched(r, err, "revoke user"); err != nil {
		return err
	}
	_, err = s.db.Write(ctx).NewUpdate().Table("personal_keys").Set("revoked_at = ?", when).
		Where("user_id = ? AND revoked_at IS NULL", id).Exec(ctx)
	return found(err, "revoke the keys of a user")
}

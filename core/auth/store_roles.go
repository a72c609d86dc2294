package auth

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/fault"
)

// roleStore is the tables of roles and their members.
type roleStore struct {
	table
	userTable userStore // reads authors and members
}

type roleRow struct {
	bun.BaseModel           `bun:"table:roles,alias:r"`
	ID                      string `bun:",pk"`
	OrganizationID          string
	Name                    string
	FeatureFlagsAccessLevel int
	CreatedBy               int64 `bun:",nullzero"`
	CreatedAt               int64
	UpdatedAt               int64
}

var errRoleTaken = fault.Field("name", "unique", "There is already a role with this name.")

func roleRowOf(r Role) *roleRow {
	row := &roleRow{
		ID: r.ID, OrganizationID: r.OrganizationID, Name: r.Name, FeatureFlagsAccessLevel: r.FlagsAccessLevel,
		CreatedAt: r.CreatedAt.UnixMicro(), UpdatedAt: now().UnixMicro(),
	}
	if r.CreatedBy != nil {
		row.CreatedBy = r.CreatedBy.ID
	}
	return row
}

func (s roleStore) addRole(ctx context.Context, r Role) error {
	_, err := s.insert(ctx, roleRowOf(r)).Exec(ctx)
	return taken(err, "add role", errRoleTaken)
}

func (s roleStore) saveRole(ctx context.Context, r Role) error {
	res, err := s.db.Write(ctx).NewUpdate().Model(roleRowOf(r)).
		Column("name", "feature_flags_access_level", "updated_at").WherePK().Exec(ctx)
	if err != nil {
		return taken(err, "save role", errRoleTaken)
	}
	return touched(res, nil, "save role")
}

func (s roleStore) removeRole(ctx context.Context, organizationID, id string) error {
	r, err := s.db.Write(ctx).NewDelete().Table("roles").Where("id = ? AND organization_id = ?", id, organizationID).Exec(ctx)
	return touched(r, err, "remove role")
}

// roles lists the roles of an organization with their members; with ids, only
// those roles.
func (s roleStore) roles(ctx context.Context, organizationID string, ids ...string) ([]Role, error) {
	var rows []roleRow
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("r.organization_id = ?", organizationID).Order("r.created_at", "r.id")
	if len(ids) > 0 {
		// Postgres refuses text with a NUL. The empty id is that of no role.
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return uuid.Validate(id) != nil })
		q = q.Where("r.id IN ?", bun.Tuple(append(ids, "")))
	}
	if err := q.Scan(ctx); err != nil {
		return nil, found(err, "list roles")
	}
	if len(rows) == 0 {
		return []Role{}, nil
	}
	return s.withMembers(ctx, organizationID, rows)
}

// withMembers adds authors and members to roles.
func (s roleStore) withMembers(ctx context.Context, organizationID string, rows []roleRow) ([]Role, error) {
	authors := make([]int64, len(rows))
	for i, r := range rows {
		authors[i] = r.CreatedBy
	}
	users, err := s.userTable.usersByID(ctx, authors)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*User, len(users))
	for i := range users {
		byID[users[i].ID] = &users[i]
	}
	members, err := s.roleMembers(ctx, organizationID)
	if err != nil {
		return nil, err
	}
	out := make([]Role, len(rows))
	for i, r := range rows {
		out[i] = Role{
			ID: r.ID, OrganizationID: r.OrganizationID, Name: r.Name, FlagsAccessLevel: r.FeatureFlagsAccessLevel,
			CreatedAt: at(r.CreatedAt), CreatedBy: byID[r.CreatedBy], Members: members[r.ID],
		}
		if out[i].Members == nil {
			out[i].Members = []RoleMember{}
		}
	}
	return out, nil
}

// roleMembers returns the members of all roles of an organization, by role.
func (s roleStore) roleMembers(ctx context.Context, organizationID string) (map[string][]RoleMember, error) {
	var rows []struct {
		userColumns
		MemberID  string
		RoleID    string
		JoinedAt  int64
		UpdatedAt int64
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("role_members AS m").ColumnExpr(userColumnList).
		ColumnExpr("m.id AS member_id, m.role_id, m.joined_at, m.updated_at").
		Join("JOIN roles AS r ON r.id = m.role_id AND r.organization_id = ?", organizationID).
		Join("JOIN users AS u ON u.id = m.user_id AND u.revoked_at IS NULL").
		OrderExpr("m.joined_at, m.id").Scan(ctx, &rows)
	if err != nil {
		return nil, found(err, "list members of roles")
	}
	out := map[string][]RoleMember{}
	for _, r := range rows {
		out[r.RoleID] = append(out[r.RoleID], RoleMember{
			ID: r.MemberID, RoleID: r.RoleID, User: r.user(), JoinedAt: at(r.JoinedAt), UpdatedAt: at(r.UpdatedAt),
		})
	}
	return out, nil
}

type roleMemberRow struct {
	bun.BaseModel `bun:"table:role_members,alias:m"`
	ID            string `bun:",pk"`
	RoleID        string
	UserID        int64
	JoinedAt      int64
	UpdatedAt     int64
}

func (s roleStore) addRoleMember(ctx context.Context, m RoleMember) error {
	_, err := s.insert(ctx, &roleMemberRow{
		ID: m.ID, RoleID: m.RoleID, UserID: m.User.ID, JoinedAt: m.JoinedAt.UnixMicro(), UpdatedAt: m.UpdatedAt.UnixMicro(),
	}).Exec(ctx)
	return taken(err, "add member to role", fault.Field("user_uuid", "unique", "This user already has the role."))
}

func (s roleStore) removeRoleMember(ctx context.Context, organizationID, roleID, id string) error {
	r, err := s.db.Write(ctx).NewDelete().Table("role_members").Where("id = ? AND role_id = ?", id, roleID).
		Where("role_id IN (SELECT id FROM roles WHERE organization_id = ?)", organizationID).Exec(ctx)
	return touched(r, err, "remove member from role")
}

// levels returns the roles of a user in an organization.
func (s roleStore) levels(ctx context.Context, organizationID string, userID int64) ([]RoleLevel, error) {
	var rows []struct {
		ID                      string
		FeatureFlagsAccessLevel int
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("role_members AS m").Column("r.id", "r.feature_flags_access_level").
		Join("JOIN roles AS r ON r.id = m.role_id").
		Where("m.user_id = ? AND r.organization_id = ?", userID, organizationID).OrderExpr("r.id").Scan(ctx, &rows)
	if err != nil {
		return nil, found(err, "read the roles of a user")
	}
	out := make([]RoleLevel, len(rows))
	for i, r := range rows {
		out[i] = RoleLevel{ID: r.ID, Level: r.FeatureFlagsAccessLevel}
	}
	return out, nil
}

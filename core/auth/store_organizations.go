package auth

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/fault"
)

// organizationStore is the tables of organizations and their members.
type organizationStore struct{ table }

type organizationRow struct {
	bun.BaseModel           `bun:"table:organizations,alias:o"`
	ID                      string `bun:",pk"`
	Name                    string
	FeatureFlagsAccessLevel int
	CreatedAt               int64
	UpdatedAt               int64
}

func (r organizationRow) organization() Organization {
	return Organization{
		ID: r.ID, Name: r.Name, FlagsAccessLevel: r.FeatureFlagsAccessLevel,
		CreatedAt: at(r.CreatedAt), UpdatedAt: at(r.UpdatedAt),
	}
}

func organizationRowOf(o Organization) *organizationRow {
	return &organizationRow{
		ID: o.ID, Name: o.Name, FeatureFlagsAccessLevel: o.FlagsAccessLevel,
		CreatedAt: o.CreatedAt.UnixMicro(), UpdatedAt: o.UpdatedAt.UnixMicro(),
	}
}

func (s organizationStore) addOrganization(ctx context.Context, o Organization) error {
	_, err := s.insert(ctx, organizationRowOf(o)).Exec(ctx)
	return found(err, "add organization")
}

func (s organizationStore) organizations(ctx context.Context) ([]Organization, error) {
	var rows []organizationRow
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Order("o.created_at", "o.id").Scan(ctx); err != nil {
		return nil, found(err, "list organizations")
	}
	out := make([]Organization, len(rows))
	for i, r := range rows {
		out[i] = r.organization()
	}
	return out, nil
}

func (s organizationStore) organization(ctx context.Context, id string) (Organization, error) {
	var row organizationRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("o.id = ?", id).Scan(ctx)
	return row.organization(), found(err, "read organization")
}

func (s organizationStore) saveOrganization(ctx context.Context, o Organization) error {
	r, err := s.db.Write(ctx).NewUpdate().Model(organizationRowOf(o)).
		Column("name", "feature_flags_access_level", "updated_at").WherePK().Exec(ctx)
	return touched(r, err, "save organization")
}

type memberRow struct {
	bun.BaseModel  `bun:"table:organization_members,alias:m"`
	OrganizationID string `bun:",pk"`
	UserID         int64  `bun:",pk"`
	Level          int
	JoinedAt       int64
	UpdatedAt      int64
}

func (s organizationStore) addMember(ctx context.Context, organizationID string, userID int64, level int) error {
	when := now().UnixMicro()
	_, err := s.insert(ctx, &memberRow{
		OrganizationID: organizationID, UserID: userID, Level: level, JoinedAt: when, UpdatedAt: when,
	}).Exec(ctx)
	return taken(err, "add member", fault.Field("user", "unique", "This user is already a member of the organization."))
}

func (s organizationStore) selectMembers(ctx context.Context, organizationID string) *bun.SelectQuery {
	return s.db.Read(ctx).NewSelect().TableExpr("organization_members AS m").
		ColumnExpr(userColumnList).ColumnExpr("m.level, m.joined_at, m.updated_at").
		Join("JOIN users AS u ON u.id = m.user_id AND u.revoked_at IS NULL").
		Where("m.organization_id = ?", organizationID)
}

type memberUserRow struct {
	userColumns
	Level     int
	JoinedAt  int64
	UpdatedAt int64
}

func (r memberUserRow) member() Member {
	return Member{User: r.user(), Level: r.Level, JoinedAt: at(r.JoinedAt), UpdatedAt: at(r.UpdatedAt)}
}

func (s organizationStore) members(ctx context.Context, organizationID string) ([]Member, error) {
	var rows []memberUserRow
	if err := s.selectMembers(ctx, organizationID).OrderExpr("u.id").Scan(ctx, &rows); err != nil {
		return nil, found(err, "list members")
	}
	out := make([]Member, len(rows))
	for i, r := range rows {
		out[i] = r.member()
	}
	return out, nil
}

func (s organizationStore) member(ctx context.Context, organizationID string, userID int64) (Member, error) {
	var row memberUserRow
	err := s.selectMembers(ctx, organizationID).Where("m.user_id = ?", userID).Scan(ctx, &row)
	return row.member(), found(err, "read member")
}

func (s organizationStore) saveLevel(ctx context.Context, organizationID string, userID int64, level int) error {
	r, err := s.db.Write(ctx).NewUpdate().Table("organization_members").
		Set("level = ?", level).Set("updated_at = ?", now().UnixMicro()).
		Where("organization_id = ? AND user_id = ?", organizationID, userID).Exec(ctx)
	return touched(r, err, "save level")
}

// removeMember removes the user from the organization and its roles, and revokes
// the user's keys in it.
func (s organizationStore) removeMember(ctx context.Context, organizationID string, userID int64) error {
	r, err := s.db.Write(ctx).NewDelete().Table("organization_members").
		Where("organization_id = ? AND user_id = ?", organizationID, userID).Exec(ctx)
	if err := touched(r, err, "remove member"); err != nil {
		return err
	}
	_, err = s.db.Write(ctx).NewDelete().Table("role_members").
		Where("user_id = ? AND role_id IN (SELECT id FROM roles WHERE organization_id = ?)", userID, organizationID).Exec(ctx)
	if err != nil {
		return found(err, "remove member from roles")
	}
	_, err = s.db.Write(ctx).NewUpdate().Table("personal_keys").Set("revoked_at = ?", now().UnixMicro()).
		Where("user_id = ? AND organization_id = ? AND revoked_at IS NULL", userID, organizationID).Exec(ctx)
	return found(err, "revoke the keys of a member")
}

// onlyOwnerOf lists the organizations whose only owner is the user.
func (s organizationStore) onlyOwnerOf(ctx context.Context, userID int64) ([]string, error) {
	var ids []string
	err := s.db.Read(ctx).NewSelect().TableExpr("organization_members AS mine").Column("mine.organization_id").
		Where("mine.user_id = ? AND mine.level = ?", userID, LevelOwner).
		Where(`NOT EXISTS (
			SELECT 1 FROM organization_members m JOIN users u ON u.id = m.user_id AND u.revoked_at IS NULL
			WHERE m.organization_id = mine.organization_id AND m.level = mine.level AND m.user_id <> mine.user_id)`).
		Scan(ctx, &ids)
	return ids, found(err, "read other owners")
}

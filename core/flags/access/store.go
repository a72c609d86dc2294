package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

// RoleAccess allows the members of a role to edit one flag, although their level
// only allows to view flags.
type RoleAccess struct {
	ID        int64
	FlagID    int64
	RoleID    string
	AddedAt   time.Time
	UpdatedAt time.Time
}

// Store keeps role accesses in the database. Its methods join the transaction in
// their context.
type Store struct{ db *db.DB }

// NewStore returns the role accesses in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// accessRow is a row of feature_flag_role_access.
type accessRow struct {
	bun.BaseModel `bun:"table:feature_flag_role_access,alias:a"`

	ID        int64 `bun:"id,pk,autoincrement"`
	FlagID    int64
	RoleID    string
	AddedAt   int64
	UpdatedAt int64
}

func (r *accessRow) access() RoleAccess {
	return RoleAccess{ID: r.ID, FlagID: r.FlagID, RoleID: r.RoleID, AddedAt: time.UnixMicro(r.AddedAt).UTC(), UpdatedAt: time.UnixMicro(r.UpdatedAt).UTC()}
}

// RolesOfFlags returns the ids of the roles with access to each flag.
func (s *Store) RolesOfFlags(ctx context.Context, flagIDs []int64) (map[int64][]string, error) {
	var rows []accessRow
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Where("flag_id IN (?)", bun.List(flagIDs)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read roles of flags: %w", err)
	}
	out := map[int64][]string{}
	for _, r := range rows {
		out[r.FlagID] = append(out[r.FlagID], r.RoleID)
	}
	return out, nil
}

// RoleAccesses returns the role accesses of a flag, oldest first.
func (s *Store) RoleAccesses(ctx context.Context, flagID int64) ([]RoleAccess, error) {
	var rows []accessRow
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Where("flag_id = ?", flagID).OrderExpr("id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("list roles of flag %d: %w", flagID, err)
	}
	list := make([]RoleAccess, 0, len(rows))
	for i := range rows {
		list = append(list, rows[i].access())
	}
	return list, nil
}

// RoleAccess returns one role access of a flag, or NotFound.
func (s *Store) RoleAccess(ctx context.Context, flagID, id int64) (RoleAccess, error) {
	var row accessRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("flag_id = ? AND id = ?", flagID, id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return RoleAccess{}, errNotFound
	}
	if err != nil {
		return RoleAccess{}, fmt.Errorf("read role access %d: %w", id, err)
	}
	return row.access(), nil
}

// AddRoleAccess stores a and sets its id. A second access of one role is Invalid.
func (s *Store) AddRoleAccess(ctx context.Context, a *RoleAccess) error {
	row := &accessRow{FlagID: a.FlagID, RoleID: a.RoleID, AddedAt: a.AddedAt.UnixMicro(), UpdatedAt: a.UpdatedAt.UnixMicro()}
	_, err := s.db.Write(ctx).NewInsert().Model(row).Returning("id").Exec(ctx)
	if db.Duplicate(err) {
		return fault.Field("role_id", "unique", "This role already has access to the feature flag.")
	}
	if err != nil {
		return fmt.Errorf("give role %s flag %d: %w", a.RoleID, a.FlagID, err)
	}
	a.ID = row.ID
	return nil
}

// RemoveRoleAccess deletes a role access of a flag, or returns NotFound.
func (s *Store) RemoveRoleAccess(ctx context.Context, flagID, id int64) error {
	res, err := s.db.Write(ctx).NewDelete().Model((*accessRow)(nil)).Where("flag_id = ? AND id = ?", flagID, id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove role access %d: %w", id, err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		return errNotFound
	}
	return nil
}

// FlagsOfRoles returns the flags of the projects that each role has access to, by
// the id of the role, without deleted flags.
func (s *Store) FlagsOfRoles(ctx context.Context, projectIDs []int64, roleIDs []string) (map[string][]auth.RoleFlag, error) {
	out := map[string][]auth.RoleFlag{}
	if len(roleIDs) == 0 || len(projectIDs) == 0 {
		return out, nil
	}
	var rows []struct {
		RoleID string
		ID     int64
		Key    string
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("feature_flag_role_access AS a").
		Join("JOIN feature_flags AS f ON f.id = a.flag_id").
		ColumnExpr("a.role_id, f.id, f.key").
		Where("f.project_id IN (?) AND f.deleted = ? AND a.role_id IN (?)", bun.List(projectIDs), false, bun.List(roleIDs)).
		OrderExpr("f.id").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read flags of roles: %w", err)
	}
	for _, r := range rows {
		out[r.RoleID] = append(out[r.RoleID], auth.RoleFlag{ID: r.ID, Key: r.Key})
	}
	return out, nil
}

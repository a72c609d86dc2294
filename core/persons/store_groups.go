package persons

import (
	"context"
	"strings"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// groupTypeRow is a row of group_types.
type groupTypeRow struct {
	Name         string  `bun:"name"`
	Slot         int     `bun:"slot"`
	NameSingular *string `bun:"name_singular"`
	NamePlural   *string `bun:"name_plural"`
	CreatedAt    int64   `bun:"created_at"`
}

func (s *store) groupTypes(ctx context.Context, projectID int64) ([]GroupType, error) {
	var rows []groupTypeRow
	err := s.db.Read(ctx).NewSelect().Table("group_types").
		Column("name", "slot", "name_singular", "name_plural", "created_at").
		Where("project_id = ?", projectID).Order("slot").Scan(ctx, &rows)
	out := make([]GroupType, len(rows))
	for i, r := range rows {
		out[i] = GroupType{Name: r.Name, Index: r.Slot, Singular: r.NameSingular, Plural: r.NamePlural,
			CreatedAt: toTime(r.CreatedAt)}
	}
	return out, err
}

type groupRow struct {
	Slot       int    `bun:"slot"`
	Key        string `bun:"group_key"`
	CreatedAt  int64  `bun:"created_at"`
	Properties string `bun:"properties"`
}

func (s *store) selectGroups(ctx context.Context, projectID int64, slot int) *bun.SelectQuery {
	return s.db.Read(ctx).NewSelect().Table("project_groups").Column("slot", "group_key", "created_at", "properties").
		Where("project_id = ?", projectID).Where("slot = ?", slot)
}

func groupsOf(ctx context.Context, q *bun.SelectQuery) ([]Group, error) {
	var rows []groupRow
	err := q.Scan(ctx, &rows)
	out := make([]Group, len(rows))
	for i, r := range rows {
		out[i] = Group{TypeIndex: r.Slot, Key: r.Key, Properties: []byte(r.Properties),
			CreatedAt: toTime(r.CreatedAt)}
	}
	return out, err
}

// groupsAfter returns the next groups of a type after a key, ascending.
func (s *store) groupsAfter(ctx context.Context, projectID int64, slot int, after string, limit int) ([]Group, error) {
	return groupsOf(ctx, s.selectGroups(ctx, projectID, slot).Where("group_key > ?", after).
		Order("group_key").Limit(int64(limit)))
}

func (s *store) renameGroupType(ctx context.Context, projectID int64, t *GroupType) error {
	_, err := s.db.Write(ctx).NewUpdate().Table("group_types").Set("name = ?", t.Name).
		Set("name_singular = ?", t.Singular).Set("name_plural = ?", t.Plural).
		Where("project_id = ?", projectID).Where("slot = ?", t.Index).Exec(ctx)
	return err
}

// addGroupType adds a type and reports whether it did: another process may have taken
// its name or its slot.
func (s *store) addGroupType(ctx context.Context, projectID int64, t *GroupType) (bool, error) {
	done, err := s.db.Write(ctx).NewInsert().Table("group_types").Model(&map[string]any{
		"project_id": projectID, "name": t.Name, "slot": t.Index, "name_singular": t.Singular, "name_plural": t.Plural, "created_at": t.CreatedAt.UnixMicro(),
	}).On("CONFLICT DO NOTHING").Exec(ctx)
	if err != nil {
		return false, err
	}
	n, _ := done.RowsAffected() // both drivers know
	return n > 0, nil
}

// deleteGroupType deletes the type and, by its foreign key, its groups.
func (s *store) deleteGroupType(ctx context.Context, projectID int64, slot int) error {
	_, err := s.db.Write(ctx).NewDelete().Table("group_types").
		Where("project_id = ?", projectID).Where("slot = ?", slot).Exec(ctx)
	return err
}

// searching adds a search in keys and names.
func searching(q *bun.SelectQuery, search string) *bun.SelectQuery {
	if search == "" {
		return q
	}
	like := db.Contains(strings.ToLower(search))
	return db.PauseEvery(q, searchedRows, "created_at").Where("(lower(group_key) LIKE ? ESCAPE '!' OR label LIKE ? ESCAPE '!')", like, like)
}

func (s *store) countGroups(ctx context.Context, projectID int64, slot int, search string) (n int, err error) {
	q := s.db.Read(ctx).NewSelect().Table("project_groups").ColumnExpr("count(*)").
		Where("project_id = ?", projectID).Where("slot = ?", slot)
	return n, searching(q, search).Scan(ctx, &n)
}

func (s *store) findGroups(ctx context.Context, projectID int64, slot int, search string, limit, offset int) ([]Group, int, error) {
	total, err := s.countGroups(ctx, projectID, slot, search)
	if err != nil || offset >= total {
		return []Group{}, total, err
	}
	page, err := groupsOf(ctx, searching(s.selectGroups(ctx, projectID, slot), search).
		OrderExpr("created_at DESC, group_key").Limit(int64(limit)).Offset(int64(offset)))
	return page, total, err
}

func (s *store) oneGroup(ctx context.Context, projectID int64, slot int, key string) ([]Group, error) {
	return groupsOf(ctx, s.selectGroups(ctx, projectID, slot).Where("group_key = ?", key))
}

func (s *store) groupsByKeys(ctx context.Context, projectID int64, slot int, keys []string) ([]Group, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	return groupsOf(ctx, s.selectGroups(ctx, projectID, slot).Where("group_key IN (?)", bun.List(keys)).Order("group_key"))
}

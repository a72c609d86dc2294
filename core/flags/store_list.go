package flags

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// Query selects and orders the flags of a list. The zero Query selects every flag
// that is not deleted, newest first.
type Query struct {
	Active       *bool
	Deleted      bool // deleted flags in place of the others
	Stale        bool // only stale flags; ignores Active
	CreatedBy    int64
	Search       string // part of key or name, ignoring case
	Type         string // boolean, multivariant, experiment or remote_config
	Tags         []string
	ExcludedKeys []string
	Order        string // a field, with a leading minus for descending
	Limit        int    // 0 is unlimited
	Offset       int
}

// orders are the fields a list can be ordered by.
var orders = map[string]string{
	"id": "f.id", "key": "f.key", "name": "f.name", "created_at": "f.created_at", "updated_at": "f.updated_at",
	"active": "f.active", "created_by": "f.created_by", "version": "f.version", "last_called_at": "c.last_called_at",
}

// list returns the flags that q selects and their number without limit and
// offset.
func (s flagStore) list(ctx context.Context, projectID int64, q Query, now time.Time) ([]*Flag, int, error) {
	var rows []flagRow
	query := s.filtered(s.flags(ctx, &rows), projectID, q, now)
	total, err := query.Clone().Count(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("count flags: %w", err)
	}
	query = ordered(query, q.Order)
	if q.Limit > 0 {
		query = query.Limit(int64(q.Limit)).Offset(int64(q.Offset))
	}
	if err := query.Scan(ctx); err != nil {
		return nil, 0, fmt.Errorf("list flags: %w", err)
	}
	list := make([]*Flag, 0, len(rows))
	for i := range rows {
		f, err := rows[i].flag()
		if err != nil {
			return nil, 0, err
		}
		list = append(list, f)
	}
	return list, int(total), nil
}

// byIDs returns the flags with the ids, also deleted ones, by id.
func (s flagStore) byIDs(ctx context.Context, projectID int64, ids []int64) ([]*Flag, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []flagRow
	err := s.flags(ctx, &rows).Where("f.project_id = ? AND f.id IN (?)", projectID, bun.List(ids)).OrderExpr("f.id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	list := make([]*Flag, 0, len(rows))
	for i := range rows {
		f, err := rows[i].flag()
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// filtered adds the conditions of q to a query.
func (s flagStore) filtered(query *bun.SelectQuery, projectID int64, q Query, now time.Time) *bun.SelectQuery {
	query = query.Where("f.project_id = ?", projectID).Where("f.deleted = ?", q.Deleted)
	if q.Stale {
		old := now.Add(-staleAfter).UnixMicro()
		query = query.Where("f.active = ?", true).
			Where("(c.last_called_at < ? OR (c.last_called_at IS NULL AND f.created_at < ? AND f.fully_rolled_out = ?))", old, old, true)
	} else if q.Active != nil {
		query = query.Where("f.active = ?", *q.Active)
	}
	if q.CreatedBy != 0 {
		query = query.Where("f.created_by = ?", q.CreatedBy)
	}
	if q.Search != "" {
		query = query.Where(`f.search LIKE ? ESCAPE '!'`, db.Contains(strings.ToLower(q.Search)))
	}
	switch q.Type {
	case "boolean":
		query = query.Where("f.multivariate = ?", false)
	case "multivariant":
		query = query.Where("f.multivariate = ?", true)
	case "remote_config":
		query = query.Where("f.is_remote_configuration = ?", true)
	case "experiment": // no such flags exist
		query = query.Where("1 = 0")
	}
	if len(q.Tags) > 0 {
		query = query.Where("EXISTS (SELECT 1 FROM "+s.elements("f.tags")+" WHERE t.value IN (?))", bun.List(q.Tags))
	}
	if len(q.ExcludedKeys) > 0 {
		query = query.Where("f.key NOT IN (?)", bun.List(q.ExcludedKeys))
	}
	return query
}

// tags returns the tags of the flags of a project that are not deleted, each once and in order.
func (s flagStore) tags(ctx context.Context, projectID int64) ([]string, error) {
	tags := []string{}
	query := s.db.Read(ctx).NewSelect().Distinct().ColumnExpr("t.value").TableExpr("feature_flags AS f, "+s.elements("f.tags")).
		Where("f.project_id = ?", projectID).Where("f.deleted = ?", false).OrderExpr("t.value")
	if err := query.Scan(ctx, &tags); err != nil {
		return nil, fmt.Errorf("list tags of flags: %w", err)
	}
	return tags, nil
}

// elements returns the SQL for rows t.value of the strings in a JSON array.
func (s flagStore) elements(column string) string {
	if s.db.Postgres() {
		return "jsonb_array_elements_text(" + column + "::jsonb) AS t(value)"
	}
	return "json_each(" + column + ") AS t"
}

// ordered adds the order of a list, newest first by default.
func ordered(query *bun.SelectQuery, by string) *bun.SelectQuery {
	name, descending := strings.CutPrefix(by, "-")
	column, ok := orders[name]
	if !ok {
		column, descending = orders["created_at"], true
	}
	direction := " ASC"
	if descending {
		direction = " DESC"
	}
	return query.OrderExpr(column + direction).OrderExpr("f.id" + direction)
}

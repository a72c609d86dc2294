package persons

import (
	"context"
	"strings"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// searchedRows and readRows are how many rows SQLite searches and reads in about a
// millisecond.
const searchedRows, readRows = 512, 128

// where adds the conditions of q, except for those of findFew and its property filters.
func (q *Query) where(sel *bun.SelectQuery, projectID int64) *bun.SelectQuery {
	if q.Search != "" {
		like := db.Contains(strings.ToLower(q.Search))
		byLabel := sel.NewSelect().TableExpr("persons").Column("id").Where("project_id = ? AND label IS NOT NULL", projectID)
		byID := sel.NewSelect().TableExpr("person_distinct_ids").Column("person_id").Where("project_id = ?", projectID)
		byLabel = db.PauseEvery(byLabel, searchedRows, "id").Where("label LIKE ? ESCAPE '!'", like)
		byID = db.PauseEvery(byID, searchedRows, "person_id").Where("lower(distinct_id) LIKE ? ESCAPE '!'", like)
		sel = sel.Where("p.id IN (?)", byLabel.Union(byID))
	}
	if q.Identified != nil {
		sel = sel.Where("p.is_identified = ?", *q.Identified)
	}
	return sel
}

// lastCharacter is the last one in the order of bytes.
const lastCharacter = "\U0010ffff"

// byPrefix returns the numbers of at most limit persons whose search text begins with
// prefix, in the order of the text.
func (s *store) byPrefix(ctx context.Context, projectID int64, prefix string, limit int) ([]int64, error) {
	return s.byText(ctx, projectID, prefix, prefix+lastCharacter, limit)
}

// byText returns the numbers of at most limit persons whose search text is at least from and
// less than to, in the order of bytes.
func (s *store) byText(ctx context.Context, projectID int64, from, to string, limit int) (ids []int64, err error) {
	table, label := "persons INDEXED BY persons_by_label", "label"
	if s.db.Postgres() {
		table, label = "persons", `label COLLATE "C"`
	}
	return ids, s.db.Read(ctx).NewSelect().TableExpr(table).Column("id").
		Where("project_id = ? AND label IS NOT NULL", projectID).
		Where("? >= ?", bun.Safe(label), from).Where("? < ?", bun.Safe(label), to).
		OrderExpr(label).Limit(int64(limit)).Scan(ctx, &ids)
}

func (s *store) countPersons(ctx context.Context, projectID int64, q *Query) (n int, err error) {
	sel := s.db.Read(ctx).NewSelect().TableExpr("persons AS p").ColumnExpr("count(*)").Where("p.project_id = ?", projectID)
	return n, q.where(sel, projectID).Scan(ctx, &n)
}

func (s *store) findPersons(ctx context.Context, projectID int64, q *Query, limit, offset int) ([]Person, error) {
	return s.people(ctx, q.where(s.selectPersons(ctx, projectID), projectID).
		OrderExpr("p.created_at DESC, p.id DESC").Limit(int64(limit)).Offset(int64(offset)))
}

// findAfter returns the persons after last in the order of findPersons, from the
// first if last is nil, without their distinct ids.
func (s *store) findAfter(ctx context.Context, projectID int64, q *Query, last *Person, limit int) ([]Person, error) {
	sel := q.where(s.selectPersons(ctx, projectID), projectID)
	if last != nil {
		sel = sel.Where("(p.created_at, p.id) < (?, ?)", toMicros(last.CreatedAt), last.ID)
	}
	return s.plainPeople(ctx, db.PauseEvery(sel, readRows, "p.id").OrderExpr("p.created_at DESC, p.id DESC").Limit(int64(limit)))
}

func (s *store) byID(ctx context.Context, projectID, id int64) ([]Person, error) {
	return s.people(ctx, s.selectPersons(ctx, projectID).Where("p.id = ?", id))
}

func (s *store) byUUID(ctx context.Context, projectID int64, id string) ([]Person, error) {
	return s.people(ctx, s.selectPersons(ctx, projectID).Where("p.uuid = ?", id))
}

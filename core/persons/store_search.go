package persons

import (
	"context"
	"strings"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// idsByPrefix returns the numbers of persons with a distinct id that is text, or begins with
// it, or with a search text that begins with it: at most limit of each. On Postgres no index
// has the beginnings of distinct ids.
func (s *store) idsByPrefix(ctx context.Context, projectID int64, text string, limit int) ([]int64, error) {
	ids, err := s.byPrefix(ctx, projectID, strings.ToLower(text), limit)
	if err != nil {
		return nil, err
	}
	sel := s.db.Read(ctx).NewSelect().Table("person_distinct_ids").Column("person_id").Where("project_id = ?", projectID)
	if s.db.Postgres() {
		sel = sel.Where("distinct_id = ?", text)
	} else {
		sel = sel.Where("distinct_id >= ? AND distinct_id < ?", text, text+lastCharacter)
	}
	var more []int64
	err = sel.Order("distinct_id").Limit(int64(limit)).Scan(ctx, &more)
	return append(ids, more...), err
}

// between selects the persons behind a place in the order of the list, which has the newest
// first, up to and including end. A zero Position has no bound.
func between(sel *bun.SelectQuery, behind, end Position) *bun.SelectQuery {
	if behind.ID != 0 {
		sel = sel.Where("(p.created_at, p.id) < (?, ?)", toMicros(behind.CreatedAt), behind.ID)
	}
	if end.ID != 0 {
		// SQLite takes the bound of an index from the first condition only.
		sel = sel.Where("p.created_at >= ?", toMicros(end.CreatedAt)).Where("(p.created_at, p.id) >= (?, ?)", toMicros(end.CreatedAt), end.ID)
	}
	return sel
}

// windowEnd returns the place of the last of size persons behind a place, the zero Position
// if there are fewer.
func (s *store) windowEnd(ctx context.Context, projectID int64, behind Position, size int) (Position, error) {
	var rows []personRow
	sel := s.db.Read(ctx).NewSelect().TableExpr("persons AS p").ColumnExpr("p.created_at, p.id").Where("p.project_id = ?", projectID)
	err := between(sel, behind, Position{}).OrderExpr("p.created_at DESC, p.id DESC").Offset(int64(size-1)).Limit(1).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return Position{}, err
	}
	return Position{toTime(rows[0].CreatedAt), rows[0].ID}, nil
}

// findBetween returns the first persons of a window that match q, except for its property
// filters, without their distinct ids.
func (s *store) findBetween(ctx context.Context, projectID int64, q *Query, behind, end Position, limit int) ([]Person, error) {
	sel := between(s.selectPersons(ctx, projectID), behind, end)
	if q.Search != "" {
		// With OFFSET Postgres looks up the distinct ids of each person of the window. Without, its
		// planner takes the window for a quarter of the table and reads all distinct ids.
		like := db.Contains(strings.ToLower(q.Search))
		sel = sel.Where(`(p.label LIKE ? ESCAPE '!' OR EXISTS (SELECT 1 FROM person_distinct_ids AS d
			WHERE d.person_id = p.id AND lower(d.distinct_id) LIKE ? ESCAPE '!' LIMIT 1 OFFSET 0))`, like, like)
	}
	if q.Identified != nil {
		sel = sel.Where("p.is_identified = ?", *q.Identified)
	}
	return s.plainPeople(ctx, sel.OrderExpr("p.created_at DESC, p.id DESC").Limit(int64(limit)))
}

func (s *store) countBetween(ctx context.Context, projectID int64, behind, end Position) (n int64, err error) {
	sel := s.db.Read(ctx).NewSelect().TableExpr("persons AS p").ColumnExpr("count(*)").Where("p.project_id = ?", projectID)
	return n, between(sel, behind, end).Scan(ctx, &n)
}

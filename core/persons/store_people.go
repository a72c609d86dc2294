package persons

import (
	"context"
	"slices"

	"github.com/uptrace/bun"
)

// personRow is a row of persons.
type personRow struct {
	ID           int64  `bun:"id"`
	UUID         string `bun:"uuid"`
	CreatedAt    int64  `bun:"created_at"`
	IsIdentified bool   `bun:"is_identified"`
	Version      int64  `bun:"version"`
	Properties   string `bun:"properties"`
}

const personColumns = "p.id, p.uuid, p.created_at, p.is_identified, p.version, p.properties"

func (s *store) selectPersons(ctx context.Context, projectID int64) *bun.SelectQuery {
	return s.db.Read(ctx).NewSelect().TableExpr("persons AS p").ColumnExpr(personColumns).
		Where("p.project_id = ?", projectID)
}

// people reads persons with their distinct ids.
func (s *store) people(ctx context.Context, q *bun.SelectQuery) ([]Person, error) {
	out, err := s.plainPeople(ctx, q)
	if err != nil {
		return nil, err
	}
	return out, s.addDistinctIDs(ctx, out)
}

// plainPeople reads persons without their distinct ids.
func (s *store) plainPeople(ctx context.Context, q *bun.SelectQuery) ([]Person, error) {
	var rows []personRow
	if err := q.Scan(ctx, &rows); err != nil {
		return nil, err
	}
	out := make([]Person, len(rows))
	for i, r := range rows {
		out[i] = Person{
			ID: r.ID, UUID: r.UUID, DistinctIDs: []string{}, Properties: []byte(r.Properties),
			CreatedAt: toTime(r.CreatedAt), IsIdentified: r.IsIdentified, Version: r.Version,
		}
	}
	return out, nil
}

func (s *store) addDistinctIDs(ctx context.Context, people []Person) error {
	if len(people) == 0 {
		return nil
	}
	place := make(map[int64]int, len(people))
	ids := make([]int64, len(people))
	for i := range people {
		place[people[i].ID], ids[i] = i, people[i].ID
	}
	var links []struct {
		DistinctID string `bun:"distinct_id"`
		PersonID   int64  `bun:"person_id"`
	}
	err := s.db.Read(ctx).NewSelect().Table("person_distinct_ids").Column("distinct_id", "person_id").
		Where("person_id IN (?)", bun.List(ids)).Order("added_at", "distinct_id").Scan(ctx, &links)
	for _, l := range links {
		p := &people[place[l.PersonID]]
		p.DistinctIDs = append(p.DistinctIDs, l.DistinctID)
	}
	return err
}

// walk returns the next persons after last, from the first if last is nil, in the
// order of their creation, which an index has. A merge moves the creation of a
// person back only, so that no person is returned twice.
func (s *store) walk(ctx context.Context, projectID int64, last *Person, limit int) ([]Person, error) {
	out, err := s.walkProperties(ctx, projectID, last, limit)
	if err != nil {
		return nil, err
	}
	return out, s.addDistinctIDs(ctx, out)
}

// walkProperties is walk without distinct ids.
func (s *store) walkProperties(ctx context.Context, projectID int64, last *Person, limit int) ([]Person, error) {
	sel := s.selectPersons(ctx, projectID)
	if last != nil {
		sel = sel.Where("(p.created_at, p.id) > (?, ?)", toMicros(last.CreatedAt), last.ID)
	}
	return s.plainPeople(ctx, sel.OrderExpr("p.created_at, p.id").Limit(int64(limit)))
}

func (s *store) byDistinctID(ctx context.Context, projectID int64, distinctID string) ([]Person, error) {
	return s.people(ctx, s.selectPersons(ctx, projectID).
		Join("JOIN person_distinct_ids AS d ON d.person_id = p.id").
		Where("d.project_id = ?", projectID).Where("d.distinct_id = ?", distinctID))
}

// resolve queries in chunks, because SQLite limits the number of parameters.
func (s *store) resolve(ctx context.Context, projectID int64, distinctIDs []string) (map[string]Ref, error) {
	out := make(map[string]Ref, len(distinctIDs))
	for chunk := range slices.Chunk(distinctIDs, 1000) {
		var rows []struct {
			DistinctID string `bun:"distinct_id"`
			ID         int64  `bun:"id"`
			UUID       string `bun:"uuid"`
		}
		err := s.db.Read(ctx).NewSelect().TableExpr("person_distinct_ids AS d").
			Join("JOIN persons AS p ON p.id = d.person_id").ColumnExpr("d.distinct_id, p.id, p.uuid").
			Where("d.project_id = ?", projectID).Where("d.distinct_id IN (?)", bun.List(chunk)).Scan(ctx, &rows)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.DistinctID] = Ref{ID: r.ID, UUID: r.UUID}
		}
	}
	return out, nil
}

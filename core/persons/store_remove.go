package persons

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// lockPerson locks a person until the transaction ends, and returns its distinct
// ids in the order they were added. It fails with NotFound if the person no longer
// exists.
func (s *store) lockPerson(ctx context.Context, id int64) ([]string, error) {
	q := s.db.Write(ctx).NewSelect().Table("persons").Column("id").Where("id = ?", id)
	if s.db.Postgres() {
		q = q.For("UPDATE")
	}
	if err := q.Scan(ctx, &id); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return nil, errNoPerson
		}
		return nil, err
	}
	var ids []string
	err := s.db.Write(ctx).NewSelect().Table("person_distinct_ids").Column("distinct_id").
		Where("person_id = ?", id).Order("added_at", "distinct_id").Scan(ctx, &ids)
	return ids, err
}

func (s *store) deletePerson(ctx context.Context, id int64) error {
	w := s.db.Write(ctx)
	if _, err := w.NewDelete().Table("person_distinct_ids").Where("person_id = ?", id).Exec(ctx); err != nil {
		return err
	}
	_, err := w.NewDelete().Table("persons").Where("id = ?", id).Exec(ctx)
	return err
}

// owners returns the persons that own the distinct ids of r, with the person that
// r names, ascending.
func (s *store) owners(ctx context.Context, r *Removal) ([]int64, error) {
	owners := []int64{}
	if r.PersonID != 0 {
		owners = append(owners, r.PersonID)
	}
	for ids := range slices.Chunk(r.DistinctIDs, 500) {
		var found []int64
		err := s.db.Write(ctx).NewSelect().Table("person_distinct_ids").Distinct().Column("person_id").
			Where("project_id = ?", r.ProjectID).Where("distinct_id IN (?)", bun.List(ids)).Scan(ctx, &found)
		if err != nil {
			return nil, err
		}
		owners = append(owners, found...)
	}
	slices.Sort(owners)
	return slices.Compact(owners), nil
}

// unlink takes distinct ids from a person. The version grows, as it does when a
// person is split.
func (s *store) unlink(ctx context.Context, projectID, personID int64, distinctIDs []string) error {
	w := s.db.Write(ctx)
	for ids := range slices.Chunk(distinctIDs, 500) {
		_, err := w.NewDelete().Table("person_distinct_ids").
			Where("project_id = ? AND person_id = ? AND distinct_id IN (?)", projectID, personID, bun.List(ids)).Exec(ctx)
		if err != nil {
			return err
		}
	}
	_, err := w.NewUpdate().Table("persons").Set("version = version + 1").Set("updated_at = ?", time.Now().UnixMicro()).
		Where("id = ?", personID).Exec(ctx)
	return err
}

func (s *store) deleteLoneIDs(ctx context.Context, projectID int64, distinctIDs []string) error {
	for ids := range slices.Chunk(distinctIDs, 500) {
		_, err := s.db.Write(ctx).NewDelete().Table("lone_distinct_ids").
			Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(ids)).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// splitPerson gives every distinct id but one a person of its own. It increments
// the version of the person, because it loses distinct ids.
func (s *store) splitPerson(ctx context.Context, projectID int64, p *Person, ids []string, main string) error {
	w := s.db.Write(ctx)
	q := w.NewUpdate().Table("persons").Set("version = version + 1").Set("updated_at = ?", time.Now().UnixMicro()).
		Where("id = ?", p.ID)
	if main == "" {
		main = ids[0]
		q = q.Set("properties = '{}'").Set("label = NULL")
	}
	if _, err := q.Exec(ctx); err != nil {
		return err
	}
	for _, id := range ids {
		if id == main {
			continue
		}
		fresh, err := s.insertPerson(ctx, projectID, id, p.CreatedAt)
		if err != nil {
			return err
		}
		_, err = w.NewUpdate().Table("person_distinct_ids").Set("person_id = ?", fresh).
			Where("project_id = ?", projectID).Where("distinct_id = ?", id).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// insertPerson creates a person with the uuid of a distinct id, or with a random
// one if that is taken: the person that was split may have it.
func (s *store) insertPerson(ctx context.Context, projectID int64, distinctID string, created time.Time) (id int64, err error) {
	for _, name := range []string{PersonUUID(projectID, distinctID), uuid.NewString()} {
		// Raw: an insert of some columns without a model that returns the id or no row.
		err = s.db.Write(ctx).NewRaw(`INSERT INTO persons (project_id, uuid, created_at, updated_at)
			VALUES (?, ?, ?, ?) ON CONFLICT (project_id, uuid) DO NOTHING RETURNING id`,
			projectID, name, toMicros(created), time.Now().UnixMicro()).Scan(ctx, &id)
		if !errors.Is(err, sql.ErrNoRows) {
			return id, err
		}
	}
	return 0, err
}

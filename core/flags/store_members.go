package flags

import (
	"context"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/flags/decide"
)

// memberRow is a row of cohort_members.
type memberRow struct {
	bun.BaseModel `bun:"table:cohort_members,alias:m"`

	ProjectID  int64  `bun:",pk"`
	DistinctID string `bun:",pk"`
	CohortID   int64  `bun:",pk"`
}

// addMembers lists people in a static cohort; who is there already stays.
func (s *Store) addMembers(ctx context.Context, projectID, cohortID int64, distinctIDs []string) error {
	for ids := range slices.Chunk(distinctIDs, 1000) {
		rows := make([]memberRow, len(ids))
		for i, id := range ids {
			rows[i] = memberRow{ProjectID: projectID, DistinctID: id, CohortID: cohortID}
		}
		if _, err := s.db.Write(ctx).NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
			return fmt.Errorf("add people to cohort %d: %w", cohortID, err)
		}
	}
	return nil
}

// removeMembers takes people out of a static cohort.
func (s *Store) removeMembers(ctx context.Context, projectID, cohortID int64, distinctIDs []string) error {
	for ids := range slices.Chunk(distinctIDs, 1000) {
		_, err := s.db.Write(ctx).NewDelete().Model((*memberRow)(nil)).
			Where("project_id = ? AND cohort_id = ? AND distinct_id IN (?)", projectID, cohortID, bun.List(ids)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("remove people from cohort %d: %w", cohortID, err)
		}
	}
	return nil
}

var _ decide.Memberships = (*Store)(nil)

// StaticCohorts returns the static cohorts that list the person behind a
// distinct id, under whichever of the person's ids.
func (s *Store) StaticCohorts(ctx context.Context, projectID int64, distinctID string) ([]int64, error) {
	var ids []int64
	err := s.db.Read(ctx).NewRaw(
		`SELECT DISTINCT cohort_id FROM cohort_members WHERE project_id = ? AND (distinct_id = ? OR distinct_id IN (
			SELECT other.distinct_id FROM person_distinct_ids AS own
			JOIN person_distinct_ids AS other ON other.person_id = own.person_id
			WHERE own.project_id = ? AND own.distinct_id = ?))`, projectID, distinctID, projectID, distinctID).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read the lists of %q: %w", distinctID, err)
	}
	return ids, nil
}

// listsOf reads the static cohorts that list each distinct id of a page.
func (s *Store) listsOf(ctx context.Context, projectID int64, page []Subject) (map[string][]int64, error) {
	var distinctIDs []string
	for i := range page {
		distinctIDs = append(distinctIDs, page[i].DistinctIDs...)
	}
	out := map[string][]int64{}
	for ids := range slices.Chunk(distinctIDs, 1000) {
		var rows []memberRow
		err := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(ids)).Scan(ctx)
		if err != nil {
			return nil, fmt.Errorf("read lists of people: %w", err)
		}
		for _, r := range rows {
			out[r.DistinctID] = append(out[r.DistinctID], r.CohortID)
		}
	}
	return out, nil
}

// members counts the distinct ids a static cohort lists.
func (s *Store) members(ctx context.Context, cohortID int64) (int64, error) {
	n, err := s.db.Read(ctx).NewSelect().Model((*memberRow)(nil)).Where("cohort_id = ?", cohortID).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count people of cohort %d: %w", cohortID, err)
	}
	return n, nil
}

// Erase takes distinct ids off every list of the project for good and returns
// how many places on lists that were.
func (s *Store) Erase(ctx context.Context, projectID int64, distinctIDs []string) (int64, error) {
	var total int64
	for ids := range slices.Chunk(distinctIDs, 1000) {
		res, err := s.db.Write(ctx).NewDelete().Model((*memberRow)(nil)).
			Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(ids)).Exec(ctx)
		if err != nil {
			return total, fmt.Errorf("erase people from cohorts: %w", err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return total, fmt.Errorf("erase people from cohorts: %w", err)
		}
		total += n
	}
	return total, nil
}

package cohorts

import (
	"context"
	"fmt"
	"slices"

	"github.com/uptrace/bun"
)

// memberRow is a row of cohort_members.
type memberRow struct {
	bun.BaseModel `bun:"table:cohort_members,alias:m"`

	ProjectID  int64  `bun:",pk"`
	DistinctID string `bun:",pk"`
	CohortID   int64  `bun:",pk"`
}

// chunkSize bounds the parameters of one statement.
const chunkSize = 1000

// addMembers adds distinct ids to the list of a static cohort and returns how many
// were not in it.
func (s *Store) addMembers(ctx context.Context, projectID, cohortID int64, distinctIDs []string) (added int64, err error) {
	for ids := range slices.Chunk(distinctIDs, chunkSize) {
		rows := make([]memberRow, len(ids))
		for i, id := range ids {
			rows[i] = memberRow{ProjectID: projectID, DistinctID: id, CohortID: cohortID}
		}
		res, err := s.db.Write(ctx).NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx)
		if err != nil {
			return added, fmt.Errorf("add people to cohort %d: %w", cohortID, err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return added, fmt.Errorf("add people to cohort %d: %w", cohortID, err)
		}
		added += n
	}
	return added, nil
}

// removeMembers removes distinct ids from the list of a static cohort and returns how
// many were in it.
func (s *Store) removeMembers(ctx context.Context, projectID, cohortID int64, distinctIDs []string) (removed int64, err error) {
	for ids := range slices.Chunk(distinctIDs, chunkSize) {
		res, err := s.db.Write(ctx).NewDelete().Model((*memberRow)(nil)).
			Where("project_id = ? AND cohort_id = ? AND distinct_id IN (?)", projectID, cohortID, bun.List(ids)).Exec(ctx)
		if err != nil {
			return removed, fmt.Errorf("remove people from cohort %d: %w", cohortID, err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return removed, fmt.Errorf("remove people from cohort %d: %w", cohortID, err)
		}
		removed += n
	}
	return removed, nil
}

// StaticCohorts returns the static cohorts that list the person with a distinct
// id, under any of the ids of the person.
func (s *Store) StaticCohorts(ctx context.Context, projectID int64, distinctID string) ([]int64, error) {
	var ids []int64
	// Raw: a self-join inside a subquery, on the path of decide.
	err := s.db.Lookup(ctx).NewRaw(
		`SELECT DISTINCT cohort_id FROM cohort_members WHERE project_id = ? AND (distinct_id = ? OR distinct_id IN (
			SELECT other.distinct_id FROM person_distinct_ids AS own
			JOIN person_distinct_ids AS other ON other.person_id = own.person_id
			WHERE own.project_id = ? AND own.distinct_id = ?))`, projectID, distinctID, projectID, distinctID).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read static cohorts of %q: %w", distinctID, err)
	}
	return ids, nil
}

// StaticCohortsOf returns the static cohorts that list each distinct id.
func (s *Store) StaticCohortsOf(ctx context.Context, projectID int64, distinctIDs []string) (map[string][]int64, error) {
	out := map[string][]int64{}
	for ids := range slices.Chunk(distinctIDs, chunkSize) {
		var rows []memberRow
		err := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(ids)).Scan(ctx)
		if err != nil {
			return nil, fmt.Errorf("read static cohorts: %w", err)
		}
		for _, r := range rows {
			out[r.DistinctID] = append(out[r.DistinctID], r.CohortID)
		}
	}
	return out, nil
}

// countMembers counts the distinct ids that a static cohort lists.
func (s *Store) countMembers(ctx context.Context, cohortID int64) (int64, error) {
	n, err := s.db.Read(ctx).NewSelect().Model((*memberRow)(nil)).Where("cohort_id = ?", cohortID).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count people of cohort %d: %w", cohortID, err)
	}
	return n, nil
}

// Erase removes distinct ids from every list of the project and returns the
// number of removed entries.
func (s *Store) Erase(ctx context.Context, projectID int64, distinctIDs []string) (int64, error) {
	var total int64
	for ids := range slices.Chunk(distinctIDs, chunkSize) {
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

package cohorts

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/core/flags/audience"
)

// personIDs returns the numbers of the persons whom a static cohort lists, in the
// order of their creation: at most one more than the limit of q.
func (s *Store) personIDs(ctx context.Context, projectID, cohortID int64, q audience.Query) ([]int64, error) {
	var ids []int64
	// Raw: a join inside a subquery, and a comparison of rows.
	err := s.db.Read(ctx).NewRaw(
		`SELECT p.id FROM persons AS p WHERE p.id IN (
			SELECT d.person_id FROM cohort_members AS m
			JOIN person_distinct_ids AS d ON d.project_id = m.project_id AND d.distinct_id = m.distinct_id
			WHERE m.project_id = ? AND m.cohort_id = ?)
		AND (p.created_at, p.id) > (?, ?) ORDER BY p.created_at, p.id LIMIT ? OFFSET ?`,
		projectID, cohortID, micros(q), q.After.ID, q.Limit+1, q.Skip).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read persons of cohort %d: %w", cohortID, err)
	}
	return ids, nil
}

// micros returns the time of the position of q, one before all persons for the zero
// position: persons may be as old as the calendar.
func micros(q audience.Query) int64 {
	if q.After.ID == 0 {
		return -1 << 63
	}
	return q.After.CreatedAt.UnixMicro()
}

package actions

import (
	"context"
	"slices"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
)

// UsingCohort returns the names of the actions of a project that read a cohort and
// are not deleted.
func (s *Store) UsingCohort(ctx context.Context, projectID, cohortID int64) ([]string, error) {
	list, _, err := s.listActive(ctx, projectID)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list {
		m, err := actionmatch.Compile(list[i].Steps, actionmatch.CompileOptions{Lenient: true})
		if err != nil {
			continue // matches nothing, with or without the cohort
		}
		if needs := m.Needs(); slices.Contains(needs.Cohorts, cohortID) {
			names = append(names, list[i].Title())
		}
	}
	return names, nil
}

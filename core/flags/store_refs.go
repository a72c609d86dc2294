package flags

import (
	"context"
	"fmt"
	"slices"

	"github.com/guidonhq/guidon/core/flags/document"
)

// CreatorOfFlag returns the user who created a flag, 0 for none, or NotFound.
func (s flagStore) CreatorOfFlag(ctx context.Context, projectID, flagID int64) (int64, error) {
	f, err := s.flag(ctx, projectID, flagID)
	if err != nil {
		return 0, err
	}
	return f.CreatedBy, nil
}

// FlagsUsingCohort returns the keys of the flags that use a cohort and are not
// deleted.
func (s flagStore) FlagsUsingCohort(ctx context.Context, projectID, cohortID int64) ([]string, error) {
	var rows []flagRow
	err := s.db.Read(ctx).NewSelect().Model(&rows).Column("id", "key", "filters").
		Where("project_id = ? AND deleted = ? AND filters LIKE ?", projectID, false, `%"cohort"%`).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read flags that use cohort %d: %w", cohortID, err)
	}
	var keys []string
	for _, r := range rows {
		if slices.Contains(document.CohortReferences([]byte(r.Filters)), cohortID) {
			keys = append(keys, r.Key)
		}
	}
	return keys, nil
}

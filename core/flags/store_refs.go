package flags

import (
	"context"
	"fmt"
	"slices"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/flags/rules"
)

// graph returns the flags of a project that are not deleted, with their variants and
// the flags that each of them depends on.
func (s flagStore) graph(ctx context.Context, projectID int64) (map[int64]rules.FlagRef, error) {
	var rows []struct {
		ID      int64
		Key     string
		Active  bool
		Filters string
	}
	err := s.db.Read(ctx).NewSelect().Table("feature_flags").
		Column("id", "key", "active").
		ColumnExpr(`CASE WHEN filters LIKE '%flag_evaluates_to%' OR filters LIKE '%"variants"%' OR filters LIKE '%holdout%' THEN filters ELSE '{}' END AS filters`).
		Where("project_id = ? AND deleted = ?", projectID, false).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read dependencies of project %d: %w", projectID, err)
	}
	graph := make(map[int64]rules.FlagRef, len(rows))
	for _, r := range rows {
		ref := rules.FlagRef{Key: r.Key, Active: r.Active}
		if r.Filters != "{}" {
			ref.DependsOn = document.FlagDependencies([]byte(r.Filters))
			ref.Variants = variantTexts([]byte(r.Filters))
		}
		graph[r.ID] = ref
	}
	return graph, nil
}

// variantTexts returns the texts that a flag with the filters evaluates to: the keys
// of its variants and the name of its holdout. It returns none for filters that
// cannot be read.
func variantTexts(raw []byte) []string {
	f, err := filters.Parse(raw)
	if err != nil {
		return nil
	}
	var out []string
	for _, v := range f.Variants {
		out = append(out, v.Key)
	}
	if f.Holdout != nil {
		out = append(out, "holdout-"+f.Holdout.ID)
	}
	return out
}

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

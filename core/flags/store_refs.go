package flags

import (
	"context"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/rules"
)

// graph reads the flags of a project that are not deleted, and which flags
// each of them depends on.
func (s *Store) graph(ctx context.Context, projectID int64) (map[int64]rules.FlagRef, error) {
	var rows []struct {
		ID      int64
		Key     string
		Active  bool
		Filters string
	}
	err := s.db.Read(ctx).NewSelect().Table("feature_flags").
		Column("id", "key", "active").
		ColumnExpr(`CASE WHEN filters LIKE '%flag_evaluates_to%' THEN filters ELSE '{}' END AS filters`).
		Where("project_id = ? AND deleted = ?", projectID, false).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read dependencies of project %d: %w", projectID, err)
	}
	graph := make(map[int64]rules.FlagRef, len(rows))
	for _, r := range rows {
		ref := rules.FlagRef{Key: r.Key, Active: r.Active}
		if r.Filters != "{}" {
			ref.DependsOn = document.FlagDependencies([]byte(r.Filters))
		}
		graph[r.ID] = ref
	}
	return graph, nil
}

// cohortRefs reads what the rules ask of the project's cohorts that are not
// deleted, and what these are made of.
func (s *Store) cohortRefs(ctx context.Context, projectID int64) (map[int64]rules.CohortRef, map[int64]document.CohortTree, error) {
	var rows []struct {
		ID      int64
		Name    string
		Filters string
	}
	err := s.db.Read(ctx).NewSelect().Table("cohorts").Column("id", "name", "filters").
		Where("project_id = ? AND deleted = ?", projectID, false).Scan(ctx, &rows)
	if err != nil {
		return nil, nil, fmt.Errorf("read cohorts of project %d: %w", projectID, err)
	}
	trees := make(map[int64]document.CohortTree, len(rows))
	for _, r := range rows {
		trees[r.ID] = document.ReadCohortTree([]byte(r.Filters))
	}
	refs := make(map[int64]rules.CohortRef, len(rows))
	for _, r := range rows {
		refs[r.ID] = rules.CohortRef{Name: r.Name, Behavioural: document.IsBehavioural(r.ID, trees, map[int64]bool{})}
	}
	return refs, trees, nil
}

// cohortNames reads the names of cohorts, deleted ones left out.
func (s *Store) cohortNames(ctx context.Context, projectID int64, ids []int64) (map[int64]string, error) {
	names := map[int64]string{}
	if len(ids) == 0 {
		return names, nil
	}
	var rows []struct {
		ID   int64
		Name string
	}
	err := s.db.Read(ctx).NewSelect().Table("cohorts").Column("id", "name").
		Where("project_id = ? AND deleted = ? AND id IN (?)", projectID, false, bun.List(ids)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read names of cohorts: %w", err)
	}
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	return names, nil
}

// usersOfCohort names the flags and cohorts that are made with a cohort.
func (s *Store) usersOfCohort(ctx context.Context, projectID, id int64) ([]string, error) {
	var flags, cohorts []struct {
		ID      int64
		Name    string
		Filters string
	}
	err := s.db.Read(ctx).NewSelect().Table("feature_flags").ColumnExpr("id, key AS name, filters").
		Where("project_id = ? AND deleted = ? AND filters LIKE ?", projectID, false, `%"cohort"%`).Scan(ctx, &flags)
	if err != nil {
		return nil, fmt.Errorf("read flags of cohort %d: %w", id, err)
	}
	err = s.db.Read(ctx).NewSelect().Table("cohorts").Column("id", "name", "filters").
		Where("project_id = ? AND deleted = ? AND id <> ? AND filters LIKE ?", projectID, false, id, `%"cohort"%`).Scan(ctx, &cohorts)
	if err != nil {
		return nil, fmt.Errorf("read cohorts of cohort %d: %w", id, err)
	}
	var names []string
	for _, f := range flags {
		if slices.Contains(document.CohortReferences([]byte(f.Filters)), id) {
			names = append(names, "flag "+f.Name)
		}
	}
	for _, c := range cohorts {
		if document.NestsCohort([]byte(c.Filters), id) {
			names = append(names, "cohort "+c.Name)
		}
	}
	return names, nil
}

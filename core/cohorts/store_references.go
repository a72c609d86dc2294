package cohorts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/rules"
)

// Definitions reads the cohorts that are not deleted, in the form of the evaluator and
// by id: those with the given ids, or all without ids.
func (s *Store) Definitions(ctx context.Context, projectID int64, ids ...int64) ([]eval.CohortDefinition, error) {
	var rows []row
	q := s.db.Read(ctx).NewSelect().Model(&rows).Column("id", "name", "filters", "is_static").
		Where("project_id = ? AND deleted = ?", projectID, false).OrderExpr("id")
	if len(ids) > 0 {
		q.Where("id IN (?)", bun.List(ids))
	}
	err := q.Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read cohorts of project %d: %w", projectID, err)
	}
	out := make([]eval.CohortDefinition, 0, len(rows))
	for _, r := range rows {
		out = append(out, eval.CohortDefinition{ID: r.ID, Name: r.Name, Filters: json.RawMessage(r.Filters), Static: r.IsStatic})
	}
	return out, nil
}

// CohortIDs returns the ids of the cohorts that are not deleted.
func (s *Store) CohortIDs(ctx context.Context, projectID int64) ([]int64, error) {
	var ids []int64
	err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).Column("id").
		Where("project_id = ? AND deleted = ?", projectID, false).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read ids of cohorts: %w", err)
	}
	return ids, nil
}

// References returns the cohorts that are not deleted, in the form of the write
// rules.
func (s *Store) References(ctx context.Context, projectID int64) (map[int64]rules.CohortRef, error) {
	refs, _, err := s.referencesAndTrees(ctx, projectID)
	return refs, err
}

// referencesAndTrees returns the trees of the cohorts as well.
func (s *Store) referencesAndTrees(ctx context.Context, projectID int64) (map[int64]rules.CohortRef, map[int64]document.CohortTree, error) {
	defs, err := s.Definitions(ctx, projectID)
	if err != nil {
		return nil, nil, err
	}
	trees := make(map[int64]document.CohortTree, len(defs))
	for _, d := range defs {
		trees[d.ID] = document.ReadCohortTree(d.Filters)
	}
	refs := make(map[int64]rules.CohortRef, len(defs))
	for _, d := range defs {
		refs[d.ID] = rules.CohortRef{Name: d.Name, Behavioural: document.IsBehavioural(d.ID, trees, map[int64]bool{})}
	}
	return refs, trees, nil
}

// Names returns the names of the cohorts with the ids that are not deleted.
func (s *Store) Names(ctx context.Context, projectID int64, ids []int64) (map[int64]string, error) {
	names := map[int64]string{}
	if len(ids) == 0 {
		return names, nil
	}
	var rows []row
	err := s.db.Read(ctx).NewSelect().Model(&rows).Column("id", "name").
		Where("project_id = ? AND deleted = ? AND id IN (?)", projectID, false, bun.List(ids)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read names of cohorts: %w", err)
	}
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	return names, nil
}

// usedBy returns the names of the cohorts that nest a cohort.
func (s *Store) usedBy(ctx context.Context, projectID, id int64) ([]string, error) {
	var rows []row
	err := s.db.Read(ctx).NewSelect().Model(&rows).Column("id", "name", "filters").
		Where("project_id = ? AND deleted = ? AND id <> ? AND filters LIKE ?", projectID, false, id, `%"cohort"%`).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read cohorts that use cohort %d: %w", id, err)
	}
	var names []string
	for _, r := range rows {
		if document.NestsCohort([]byte(r.Filters), id) {
			names = append(names, r.Name)
		}
	}
	return names, nil
}

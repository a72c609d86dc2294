package flags

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// definitions reads what a project's flags are compiled from and this room
// keeps: its flags and cohorts that are not deleted.
func (s *Store) definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error) {
	var stored eval.ProjectDefinitions
	var flags []struct {
		ID                   int64
		Key                  string
		Name                 string
		Filters              string
		Active               bool
		ExperienceContinuity bool
		Version              int64
	}
	err := s.db.Read(ctx).NewSelect().Table("feature_flags").
		Column("id", "key", "name", "filters", "active", "experience_continuity", "version").
		Where("project_id = ? AND deleted = ?", projectID, false).OrderExpr("id").Scan(ctx, &flags)
	if err != nil {
		return stored, fmt.Errorf("read flags of project %d: %w", projectID, err)
	}
	for _, f := range flags {
		stored.Flags = append(stored.Flags, eval.Definition{
			ID: f.ID, ProjectID: projectID, Key: f.Key, Name: f.Name, Filters: json.RawMessage(f.Filters),
			Active: f.Active, ExperienceContinuity: f.ExperienceContinuity, Version: f.Version,
		})
	}
	var cohorts []struct {
		ID       int64
		Name     string
		Filters  string
		IsStatic bool
	}
	err = s.db.Read(ctx).NewSelect().Table("cohorts").Column("id", "name", "filters", "is_static").
		Where("project_id = ? AND deleted = ?", projectID, false).OrderExpr("id").Scan(ctx, &cohorts)
	if err != nil {
		return stored, fmt.Errorf("read cohorts of project %d: %w", projectID, err)
	}
	for _, c := range cohorts {
		stored.Cohorts = append(stored.Cohorts, eval.CohortDefinition{ID: c.ID, Name: c.Name, Filters: json.RawMessage(c.Filters), Static: c.IsStatic})
	}
	return stored, nil
}

// stamps reads the number of every project that ever had flags or cohorts.
func (s *Store) stamps(ctx context.Context) (map[int64]int64, error) {
	var rows []struct {
		ProjectID int64
		Stamp     int64
	}
	if err := s.db.Read(ctx).NewSelect().Table("flag_stamps").Column("project_id", "stamp").Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read stamps of flags: %w", err)
	}
	out := make(map[int64]int64, len(rows))
	for _, r := range rows {
		out[r.ProjectID] = r.Stamp
	}
	return out, nil
}

// stamp reads the number of one project, 0 when it never had flags.
func (s *Store) stamp(ctx context.Context, projectID int64) (int64, error) {
	var n int64
	err := s.db.Read(ctx).NewSelect().Table("flag_stamps").Column("stamp").Where("project_id = ?", projectID).Scan(ctx, &n)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read stamp of flags: %w", err)
	}
	return n, nil
}

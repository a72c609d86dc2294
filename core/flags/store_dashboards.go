package flags

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/flags/document"
)

// dashboardRow is a row of dashboards.
type dashboardRow struct {
	bun.BaseModel `bun:"table:dashboards,alias:d"`

	ID          int64 `bun:"id,pk,autoincrement"`
	ProjectID   int64
	FlagID      int64
	Name        string
	Description string
	DateFrom    string
	Tags        string
	Deleted     bool
	CreatedBy   int64
	CreatedAt   int64
	UpdatedAt   int64
}

// tileRow is a row of dashboard_tiles.
type tileRow struct {
	bun.BaseModel `bun:"table:dashboard_tiles,alias:t"`

	ID          int64 `bun:"id,pk,autoincrement"`
	DashboardID int64
	Name        string
	Description string
	Query       string
}

func dashboardRowOf(d *Dashboard) *dashboardRow {
	return &dashboardRow{
		ID: d.ID, ProjectID: d.ProjectID, FlagID: d.FlagID, Name: d.Name, Description: d.Description, DateFrom: d.DateFrom,
		Tags: string(document.Encode(d.Tags)), Deleted: d.Deleted, CreatedBy: d.CreatedBy, CreatedAt: d.CreatedAt.UnixMicro(), UpdatedAt: d.UpdatedAt.UnixMicro(),
	}
}

func (r *dashboardRow) dashboard() (*Dashboard, error) {
	d := &Dashboard{
		ID: r.ID, ProjectID: r.ProjectID, FlagID: r.FlagID, Name: r.Name, Description: r.Description, DateFrom: r.DateFrom,
		Deleted: r.Deleted, CreatedBy: r.CreatedBy, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(), UpdatedAt: time.UnixMicro(r.UpdatedAt).UTC(),
	}
	if err := json.Unmarshal([]byte(r.Tags), &d.Tags); err != nil {
		return nil, fmt.Errorf("read tags of dashboard %d: %w", r.ID, err)
	}
	return d, nil
}

// dashboard reads one dashboard of the project with its tiles.
func (s *Store) dashboard(ctx context.Context, projectID, id int64) (*Dashboard, error) {
	var row dashboardRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("project_id = ? AND id = ? AND deleted = ?", projectID, id, false).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read dashboard %d: %w", id, err)
	}
	d, err := row.dashboard()
	if err != nil {
		return nil, err
	}
	var tiles []tileRow
	if err := s.db.Read(ctx).NewSelect().Model(&tiles).Where("dashboard_id = ?", id).OrderExpr("id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read tiles of dashboard %d: %w", id, err)
	}
	for _, t := range tiles {
		tile := Tile{ID: t.ID, Name: t.Name, Description: t.Description}
		if err := json.Unmarshal([]byte(t.Query), &tile.Query); err != nil {
			return nil, fmt.Errorf("read tile %d: %w", t.ID, err)
		}
		d.Tiles = append(d.Tiles, tile)
	}
	return d, nil
}

// dashboards reads a page of the project's dashboards without their tiles,
// newest first, and how many there are.
func (s *Store) dashboards(ctx context.Context, projectID int64, limit, offset int) ([]*Dashboard, int, error) {
	var rows []dashboardRow
	total, err := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND deleted = ?", projectID, false).
		OrderExpr("created_at DESC, id DESC").Limit(int64(limit)).Offset(int64(offset)).ScanAndCount(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("list dashboards: %w", err)
	}
	list := make([]*Dashboard, 0, len(rows))
	for i := range rows {
		d, err := rows[i].dashboard()
		if err != nil {
			return nil, 0, err
		}
		list = append(list, d)
	}
	return list, int(total), nil
}

// dashboardIDs tells which of the ids are dashboards of the project.
func (s *Store) dashboardIDs(ctx context.Context, projectID int64, ids []int64) (map[int64]bool, error) {
	known := map[int64]bool{}
	if len(ids) == 0 {
		return known, nil
	}
	var found []int64
	err := s.db.Read(ctx).NewSelect().Model((*dashboardRow)(nil)).Column("id").
		Where("project_id = ? AND deleted = ? AND id IN (?)", projectID, false, bun.List(ids)).Scan(ctx, &found)
	if err != nil {
		return nil, fmt.Errorf("look up dashboards: %w", err)
	}
	for _, id := range found {
		known[id] = true
	}
	return known, nil
}

// insertDashboard stores a new dashboard and its tiles.
func (s *Store) insertDashboard(ctx context.Context, d *Dashboard) error {
	row := dashboardRowOf(d)
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store dashboard: %w", err)
	}
	d.ID = row.ID
	return s.addTiles(ctx, d.ID, d.Tiles)
}

func (s *Store) addTiles(ctx context.Context, dashboardID int64, tiles []Tile) error {
	rows := make([]tileRow, len(tiles))
	for i, t := range tiles {
		rows[i] = tileRow{DashboardID: dashboardID, Name: t.Name, Description: t.Description, Query: string(document.Encode(t.Query))}
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(&rows).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store tiles of dashboard %d: %w", dashboardID, err)
	}
	return nil
}

func (s *Store) updateDashboard(ctx context.Context, d *Dashboard) error {
	if _, err := s.db.Write(ctx).NewUpdate().Model(dashboardRowOf(d)).WherePK().Exec(ctx); err != nil {
		return fmt.Errorf("store dashboard %d: %w", d.ID, err)
	}
	return nil
}

// renameUsageDashboards gives the generated dashboards of a flag the name of
// its new key, unless somebody has named them otherwise.
func (s *Store) renameUsageDashboards(ctx context.Context, f *Flag, formerKey string) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*dashboardRow)(nil)).Set("name = ?", usageName(f.Key)).
		Where("project_id = ? AND flag_id = ? AND name = ?", f.ProjectID, f.ID, usageName(formerKey)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("rename dashboards of flag %d: %w", f.ID, err)
	}
	return nil
}

// unlinkDashboard takes a dashboard that is gone out of the flags that show it.
func (s *Store) unlinkDashboard(ctx context.Context, projectID, id int64) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*flagRow)(nil)).Set("usage_dashboard = 0").
		Where("project_id = ? AND usage_dashboard = ?", projectID, id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("unlink dashboard %d: %w", id, err)
	}
	var rows []flagRow
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND analytics_dashboards <> '[]'", projectID).Scan(ctx); err != nil {
		return fmt.Errorf("unlink dashboard %d: %w", id, err)
	}
	for i := range rows {
		f, err := rows[i].flag()
		if err != nil {
			return err
		}
		if !slices.Contains(f.AnalyticsDashboards, id) {
			continue
		}
		f.AnalyticsDashboards = slices.DeleteFunc(f.AnalyticsDashboards, func(d int64) bool { return d == id })
		if err := s.update(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

package dashboards

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
)

// Store keeps dashboards and their tiles in the database.
type Store struct{ db *db.DB }

// NewStore returns the dashboards in d.
func NewStore(d *db.DB) *Store { return &Store{db: d} }

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

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
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("project_id = ? AND id = ?", projectID, id).Scan(ctx)
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

// list reads a page of the project's dashboards without their tiles,
// newest first, and how many there are.
func (s *Store) list(ctx context.Context, projectID int64, limit, offset int) ([]*Dashboard, int, error) {
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

// existing returns which of the ids are dashboards of the project.
func (s *Store) existing(ctx context.Context, projectID int64, ids []int64) (map[int64]bool, error) {
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

// insert stores a new dashboard and its tiles.
func (s *Store) insert(ctx context.Context, d *Dashboard) error {
	row := dashboardRowOf(d)
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store dashboard: %w", err)
	}
	d.ID = row.ID
	return s.addTiles(ctx, d.ID, d.Tiles)
}

func (s *Store) addTiles(ctx context.Context, dashboardID int64, tiles []Tile) error {
	if len(tiles) == 0 {
		return nil
	}
	rows := make([]tileRow, len(tiles))
	for i, t := range tiles {
		rows[i] = tileRow{DashboardID: dashboardID, Name: t.Name, Description: t.Description, Query: string(document.Encode(t.Query))}
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(&rows).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store tiles of dashboard %d: %w", dashboardID, err)
	}
	return nil
}

func (s *Store) update(ctx context.Context, d *Dashboard) error {
	if _, err := s.db.Write(ctx).NewUpdate().Model(dashboardRowOf(d)).WherePK().Exec(ctx); err != nil {
		return fmt.Errorf("store dashboard %d: %w", d.ID, err)
	}
	return nil
}

// renameUsage renames the generated dashboards of a flag, unless a user has
// renamed them.
func (s *Store) renameUsage(ctx context.Context, projectID, flagID int64, oldKey, newKey string) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*dashboardRow)(nil)).Set("name = ?", usageName(newKey)).
		Where("project_id = ? AND flag_id = ? AND name = ?", projectID, flagID, usageName(oldKey)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("rename dashboards of flag %d: %w", flagID, err)
	}
	return nil
}

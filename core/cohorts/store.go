package cohorts

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
	"github.com/guidonhq/guidon/core/flags/revision"
)

// Store keeps cohorts and the lists of static ones in the database. It checks no
// rules; Service does.
type Store struct{ db *db.DB }

// NewStore returns the cohorts in d.
func NewStore(d *db.DB) *Store { return &Store{db: d} }

// row is a row of cohorts.
type row struct {
	bun.BaseModel `bun:"table:cohorts,alias:c"`

	ID           int64 `bun:"id,pk,autoincrement"`
	ProjectID    int64
	Name         string
	Description  string
	Filters      string
	IsStatic     bool
	Deleted      bool
	CreatedBy    int64
	CreatedAt    db.Time
	UpdatedAt    db.Time
	Version      int64
	People       sql.NullInt64
	CalculatedAt sql.NullInt64
}

func rowOf(c *Cohort) *row {
	r := &row{
		ID: c.ID, ProjectID: c.ProjectID, Name: c.Name, Description: c.Description, Filters: string(c.Filters), IsStatic: c.Static,
		Deleted: c.Deleted, CreatedBy: c.CreatedBy, CreatedAt: db.At(c.CreatedAt), UpdatedAt: db.At(c.UpdatedAt), Version: c.Version,
	}
	if c.People != nil {
		r.People = sql.NullInt64{Int64: *c.People, Valid: true}
		r.CalculatedAt = sql.NullInt64{Int64: c.CalculatedAt.UnixMicro(), Valid: true}
	}
	return r
}

func (r *row) cohort() *Cohort {
	c := &Cohort{
		ID: r.ID, ProjectID: r.ProjectID, Static: r.IsStatic, CreatedBy: r.CreatedBy,
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time, Version: r.Version,
		Fields: Fields{Name: r.Name, Description: r.Description, Filters: json.RawMessage(r.Filters), Deleted: r.Deleted},
	}
	if r.People.Valid {
		c.People = &r.People.Int64
		c.CalculatedAt = time.UnixMicro(r.CalculatedAt.Int64).UTC()
	}
	return c
}

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// cohort reads one cohort of the project, deleted or not.
func (s *Store) cohort(ctx context.Context, projectID, id int64) (*Cohort, error) {
	var r row
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("project_id = ? AND id = ?", projectID, id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read cohort %d: %w", id, err)
	}
	return r.cohort(), nil
}

// list reads a page of the cohorts that are not deleted, newest first, and
// the total. A limit of 0 reads all of them.
func (s *Store) list(ctx context.Context, projectID int64, query Query, limit, offset int) ([]*Cohort, int, error) {
	var rows []row
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND deleted = ?", projectID, false)
	if query.Search != "" {
		q = q.Where(`LOWER(name) LIKE LOWER(?) ESCAPE '!'`, db.Contains(query.Search))
	}
	if query.Static != nil {
		q = q.Where("is_static = ?", *query.Static)
	}
	if query.CreatedBy != 0 {
		q = q.Where("created_by = ?", query.CreatedBy)
	}
	q = q.OrderExpr("created_at DESC, id DESC")
	if limit > 0 {
		q = q.Limit(int64(limit)).Offset(int64(offset))
	}
	total, err := q.ScanAndCount(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("list cohorts: %w", err)
	}
	list := make([]*Cohort, 0, len(rows))
	for i := range rows {
		list = append(list, rows[i].cohort())
	}
	return list, int(total), nil
}

func (s *Store) insert(ctx context.Context, c *Cohort) error {
	r := rowOf(c)
	if _, err := s.db.Write(ctx).NewInsert().Model(r).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store cohort %q: %w", c.Name, err)
	}
	c.ID = r.ID
	return revision.Mark(ctx, s.db, c.ProjectID, revision.Cohort, c.ID)
}

func (s *Store) update(ctx context.Context, c *Cohort) error {
	if _, err := s.db.Write(ctx).NewUpdate().Model(rowOf(c)).WherePK().Exec(ctx); err != nil {
		return fmt.Errorf("store cohort %d: %w", c.ID, err)
	}
	return revision.Mark(ctx, s.db, c.ProjectID, revision.Cohort, c.ID)
}

// storeCount stores the number of persons in a cohort.
func (s *Store) storeCount(ctx context.Context, id, people int64, at time.Time) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*row)(nil)).Set("people = ?, calculated_at = ?", people, at.UnixMicro()).
		Where("id = ?", id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store count of cohort %d: %w", id, err)
	}
	return nil
}

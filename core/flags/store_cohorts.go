package flags

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// cohortRow is a row of cohorts.
type cohortRow struct {
	bun.BaseModel `bun:"table:cohorts,alias:c"`

	ID           int64 `bun:"id,pk,autoincrement"`
	ProjectID    int64
	Name         string
	Description  string
	Filters      string
	IsStatic     bool
	Deleted      bool
	CreatedBy    int64
	CreatedAt    int64
	UpdatedAt    int64
	Version      int64
	People       sql.NullInt64
	CalculatedAt sql.NullInt64
}

func cohortRowOf(c *Cohort) *cohortRow {
	r := &cohortRow{
		ID: c.ID, ProjectID: c.ProjectID, Name: c.Name, Description: c.Description, Filters: string(c.Filters), IsStatic: c.Static,
		Deleted: c.Deleted, CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt.UnixMicro(), UpdatedAt: c.UpdatedAt.UnixMicro(), Version: c.Version,
	}
	if c.People != nil {
		r.People = sql.NullInt64{Int64: *c.People, Valid: true}
		r.CalculatedAt = sql.NullInt64{Int64: c.CalculatedAt.UnixMicro(), Valid: true}
	}
	return r
}

func (r *cohortRow) cohort() *Cohort {
	c := &Cohort{
		ID: r.ID, ProjectID: r.ProjectID, Name: r.Name, Description: r.Description, Filters: json.RawMessage(r.Filters), Static: r.IsStatic,
		Deleted: r.Deleted, CreatedBy: r.CreatedBy, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(), UpdatedAt: time.UnixMicro(r.UpdatedAt).UTC(), Version: r.Version,
	}
	if r.People.Valid {
		c.People = &r.People.Int64
		c.CalculatedAt = time.UnixMicro(r.CalculatedAt.Int64).UTC()
	}
	return c
}

// cohort reads one cohort of the project, deleted or not.
func (s *Store) cohort(ctx context.Context, projectID, id int64) (*Cohort, error) {
	var row cohortRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("project_id = ? AND id = ?", projectID, id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read cohort %d: %w", id, err)
	}
	return row.cohort(), nil
}

// cohorts reads a page of the project's cohorts that are not deleted, newest
// first, and how many there are. A limit of 0 is all of them.
func (s *Store) cohorts(ctx context.Context, projectID int64, search string, limit, offset int) ([]*Cohort, int, error) {
	var rows []cohortRow
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND deleted = ?", projectID, false)
	if search != "" {
		q = q.Where(`LOWER(name) LIKE LOWER(?) ESCAPE '\'`, "%"+likeText(search)+"%")
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

func (s *Store) insertCohort(ctx context.Context, c *Cohort) error {
	row := cohortRowOf(c)
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store cohort %q: %w", c.Name, err)
	}
	c.ID = row.ID
	return nil
}

func (s *Store) updateCohort(ctx context.Context, c *Cohort) error {
	if _, err := s.db.Write(ctx).NewUpdate().Model(cohortRowOf(c)).WherePK().Exec(ctx); err != nil {
		return fmt.Errorf("store cohort %d: %w", c.ID, err)
	}
	return nil
}

// counted remembers how many people a cohort has.
func (s *Store) counted(ctx context.Context, id, people int64, at time.Time) error {
	_, err := s.db.Write(ctx).NewUpdate().Table("cohorts").Set("people = ?, calculated_at = ?", people, at.UnixMicro()).
		Where("id = ?", id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store count of cohort %d: %w", id, err)
	}
	return nil
}

package schedule

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
)

// Store keeps scheduled changes in the database.
type Store struct{ db *db.DB }

// NewStore returns the scheduled changes in d.
func NewStore(d *db.DB) *Store { return &Store{db: d} }

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// errExecuted is the error of mark for a change that was executed or deleted.
var errExecuted = errors.New("the scheduled change was executed before")

type row struct {
	bun.BaseModel `bun:"table:scheduled_changes,alias:c"`

	ID            int64 `bun:"id,pk,autoincrement"`
	ProjectID     int64
	FlagID        int64
	Payload       string
	ScheduledAt   int64
	ExecutedAt    sql.NullInt64
	FailureReason sql.NullString
	CreatedBy     int64
	CreatedAt     int64
	UpdatedAt     int64
}

func (r *row) change() Change {
	c := Change{
		ID: r.ID, ProjectID: r.ProjectID, FlagID: r.FlagID, Payload: json.RawMessage(r.Payload), ScheduledAt: time.UnixMicro(r.ScheduledAt).UTC(),
		FailureReason: r.FailureReason.String, CreatedBy: r.CreatedBy, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(), UpdatedAt: time.UnixMicro(r.UpdatedAt).UTC(),
	}
	if r.ExecutedAt.Valid {
		c.ExecutedAt = time.UnixMicro(r.ExecutedAt.Int64).UTC()
	}
	return c
}

func (s *Store) insert(ctx context.Context, c *Change) error {
	r := &row{
		ProjectID: c.ProjectID, FlagID: c.FlagID, Payload: string(c.Payload), ScheduledAt: c.ScheduledAt.UnixMicro(),
		CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt.UnixMicro(), UpdatedAt: c.UpdatedAt.UnixMicro(),
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(r).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store a scheduled change: %w", err)
	}
	c.ID = r.ID
	return nil
}

// list returns the changes of a project, of one flag unless flagID is 0, the next
// one first, and their number.
func (s *Store) list(ctx context.Context, projectID, flagID int64, limit, offset int) ([]Change, int, error) {
	var rows []row
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ?", projectID)
	if flagID != 0 {
		q = q.Where("flag_id = ?", flagID)
	}
	total, err := q.OrderExpr("scheduled_at, id").Limit(int64(limit)).Offset(int64(offset)).ScanAndCount(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("list scheduled changes: %w", err)
	}
	return changesOf(rows), int(total), nil
}

func changesOf(rows []row) []Change {
	out := make([]Change, len(rows))
	for i := range rows {
		out[i] = rows[i].change()
	}
	return out
}

func (s *Store) get(ctx context.Context, projectID, id int64) (Change, error) {
	var r row
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("project_id = ? AND id = ?", projectID, id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return Change{}, errNotFound
	}
	if err != nil {
		return Change{}, fmt.Errorf("read scheduled change %d: %w", id, err)
	}
	return r.change(), nil
}

// delete deletes a change that is not executed. An executed one stays: it is a
// record.
func (s *Store) delete(ctx context.Context, projectID, id int64) error {
	res, err := s.db.Write(ctx).NewDelete().Model((*row)(nil)).Where("project_id = ? AND id = ? AND executed_at IS NULL", projectID, id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("delete scheduled change %d: %w", id, err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		return fault.New(fault.Conflict, "already_executed", "The change was executed.")
	}
	return nil
}

// due returns the first changes whose time has come.
func (s *Store) due(ctx context.Context, now time.Time, limit int) ([]Change, error) {
	var rows []row
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("executed_at IS NULL AND scheduled_at <= ?", now.UnixMicro()).
		OrderExpr("scheduled_at, id").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read due changes: %w", err)
	}
	return changesOf(rows), nil
}

// mark marks an open change as executed, with the reason of a failure or "". It
// joins the transaction in ctx and fails with errExecuted for a change that is not
// open.
func (s *Store) mark(ctx context.Context, id int64, at time.Time, reason string) error {
	res, err := s.db.Write(ctx).NewUpdate().Model((*row)(nil)).Set("executed_at = ?", at.UnixMicro()).Set("updated_at = ?", at.UnixMicro()).
		Set("failure_reason = ?", sql.NullString{String: reason, Valid: reason != ""}).Where("id = ? AND executed_at IS NULL", id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("mark scheduled change %d: %w", id, err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		return errExecuted
	}
	return nil
}

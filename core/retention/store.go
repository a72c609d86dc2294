package retention

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// store keeps rules and runs. Its methods join the transaction of their context.
type store struct{ db *db.DB }

type ruleRow struct {
	bun.BaseModel `bun:"table:event_retention,alias:r"`

	ProjectID   int64  `bun:",pk"`
	Event       string `bun:",pk"`
	KeepSeconds int64
	UpdatedAt   db.Time
}

type runRow struct {
	bun.BaseModel `bun:"table:event_retention_runs,alias:u"`

	ProjectID  int64 `bun:",pk"`
	FromAt     db.Time
	ToAt       db.Time
	StartedAt  db.Time
	FinishedAt db.Time `bun:",nullzero"`
	Deleted    int64
}

// rules returns the rules of all projects, or of one.
func (s *store) rules(ctx context.Context, projectID int64) (map[int64]Rules, error) {
	var rows []ruleRow
	q := s.db.Read(ctx).NewSelect().Model(&rows).Order("project_id", "event")
	if projectID != 0 {
		q = q.Where("project_id = ?", projectID)
	}
	if err := q.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read rules of retention: %w", err)
	}
	out := map[int64]Rules{}
	for _, r := range rows {
		p := out[r.ProjectID]
		keep := time.Duration(r.KeepSeconds) * time.Second
		if r.Event == "" {
			p.Keep = &keep
		} else {
			if p.Events == nil {
				p.Events = map[string]time.Duration{}
			}
			p.Events[r.Event] = keep
		}
		out[r.ProjectID] = p
	}
	return out, nil
}

// replace sets the rules of a project.
func (s *store) replace(ctx context.Context, projectID int64, r Rules) error {
	rows := make([]ruleRow, 0, len(r.Events)+1)
	add := func(event string, keep time.Duration) {
		rows = append(rows, ruleRow{ProjectID: projectID, Event: event, KeepSeconds: int64(keep / time.Second), UpdatedAt: db.Now()})
	}
	if r.Keep != nil {
		add("", *r.Keep)
	}
	for event, keep := range r.Events {
		add(event, keep)
	}
	err := s.db.Tx(ctx, func(ctx context.Context) error {
		if _, err := s.db.Write(ctx).NewDelete().Model((*ruleRow)(nil)).Where("project_id = ?", projectID).Exec(ctx); err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		_, err := s.db.Write(ctx).NewInsert().Model(&rows).Returning("NULL").Exec(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("write rules of retention: %w", err)
	}
	return nil
}

// run returns the last run of a project, nil without one.
func (s *store) run(ctx context.Context, projectID int64) (*runRow, error) {
	row := new(runRow)
	err := s.db.Read(ctx).NewSelect().Model(row).Where("project_id = ?", projectID).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the run of retention: %w", err)
	}
	return row, nil
}

// unfinished returns the projects with an open run.
func (s *store) unfinished(ctx context.Context) ([]int64, error) {
	var ids []int64
	err := s.db.Read(ctx).NewSelect().Model((*runRow)(nil)).Column("project_id").Where("finished_at IS NULL").Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read open runs of retention: %w", err)
	}
	return ids, nil
}

// open writes an open run; an open one stays so, with the wider time.
func (s *store) open(ctx context.Context, r *runRow) error {
	_, err := s.db.Write(ctx).NewInsert().Model(r).On("CONFLICT (project_id) DO UPDATE").
		Set("from_at = CASE WHEN u.finished_at IS NULL AND u.from_at < EXCLUDED.from_at THEN u.from_at ELSE EXCLUDED.from_at END").
		Set("to_at = CASE WHEN u.finished_at IS NULL AND u.to_at > EXCLUDED.to_at THEN u.to_at ELSE EXCLUDED.to_at END").
		Set("started_at = CASE WHEN u.finished_at IS NULL THEN u.started_at ELSE EXCLUDED.started_at END").
		Set("deleted = CASE WHEN u.finished_at IS NULL THEN u.deleted ELSE 0 END").
		Set("finished_at = NULL").Returning("NULL").Exec(ctx)
	if err != nil {
		return fmt.Errorf("open a run of retention: %w", err)
	}
	return nil
}

// countDeleted adds to the deleted events of an open run.
func (s *store) countDeleted(ctx context.Context, projectID int64, n int) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*runRow)(nil)).Set("deleted = deleted + ?", n).Where("project_id = ?", projectID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("count deleted events: %w", err)
	}
	return nil
}

// finish closes the run of a project.
func (s *store) finish(ctx context.Context, projectID int64) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*runRow)(nil)).Set("finished_at = ?", db.Now()).Where("project_id = ?", projectID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("finish a run of retention: %w", err)
	}
	return nil
}

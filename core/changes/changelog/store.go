package changelog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// Store keeps the records in the database. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the records in d.
func NewStore(d *db.DB) *Store { return &Store{db: d} }

type headRow struct {
	bun.BaseModel `bun:"table:change_revisions,alias:h"`

	ProjectID int64 `bun:",pk"`
	Revision  int64
	ChangedAt db.Time
}

type changeRow struct {
	bun.BaseModel `bun:"table:changes,alias:c"`

	ProjectID int64 `bun:",pk"`
	Revision  int64 `bun:",pk"`
	ChangedAt db.Time
	Kind      Kind
	ItemID    int64
	Name      string
	Operation string
}

// RecordOperators adds a change of operators of plugins to each project, in a
// transaction of its own for each, so that no project waits for another one.
func (s *Store) RecordOperators(ctx context.Context, projectIDs []int64) error {
	for _, id := range projectIDs {
		err := s.db.Tx(ctx, func(ctx context.Context) error {
			return s.Record(ctx, Change{ProjectID: id, At: time.Now(), Kind: Operators, Operation: Updated})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Record adds a change in the transaction in ctx.
func (s *Store) Record(ctx context.Context, c Change) error {
	head := &headRow{ProjectID: c.ProjectID, Revision: 1, ChangedAt: db.At(c.At)}
	_, err := s.db.Write(ctx).NewInsert().Model(head).On("CONFLICT (project_id) DO UPDATE").
		Set("revision = h.revision + 1").Set("changed_at = EXCLUDED.changed_at").Returning("revision").Exec(ctx)
	if err != nil {
		return fmt.Errorf("advance the revision of changes of project %d: %w", c.ProjectID, err)
	}
	row := &changeRow{
		ProjectID: c.ProjectID, Revision: head.Revision, ChangedAt: head.ChangedAt,
		Kind: c.Kind, ItemID: c.ItemID, Name: c.Name, Operation: c.Operation,
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Exec(ctx); err != nil {
		return fmt.Errorf("record change: %w", err)
	}
	if head.Revision%pruning != 0 {
		return nil
	}
	_, err = s.db.Write(ctx).NewDelete().Model((*changeRow)(nil)).
		Where("project_id = ?", c.ProjectID).Where("revision <= ?", head.Revision-kept).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove old changes: %w", err)
	}
	return nil
}

// Head returns the newest revision of a project.
func (s *Store) Head(ctx context.Context, projectID int64) (Head, error) {
	heads, err := s.Heads(ctx, []int64{projectID})
	return heads[projectID], err
}

// Heads returns the newest revisions of the projects that ever had a change.
func (s *Store) Heads(ctx context.Context, projectIDs []int64) (map[int64]Head, error) {
	var rows []headRow
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id IN (?)", bun.List(projectIDs)).Scan(ctx)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read revisions of changes: %w", err)
	}
	out := make(map[int64]Head, len(rows))
	for _, r := range rows {
		out[r.ProjectID] = Head{Revision: r.Revision, At: r.ChangedAt.Time}
	}
	return out, nil
}

// Since returns the changes of a project after a revision, oldest first, at most
// limit. complete is false if older ones are not kept any more.
func (s *Store) Since(ctx context.Context, projectID, revision int64, limit int) (list []Change, complete bool, err error) {
	var rows []changeRow
	err = s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ?", projectID).Where("revision > ?", revision).
		Order("revision").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read changes of project %d: %w", projectID, err)
	}
	list = make([]Change, len(rows))
	for i, r := range rows {
		list[i] = Change{ProjectID: r.ProjectID, Revision: r.Revision, At: r.ChangedAt.Time, Kind: r.Kind, ItemID: r.ItemID, Name: r.Name, Operation: r.Operation}
	}
	return list, len(list) == 0 || list[0].Revision == revision+1, nil
}

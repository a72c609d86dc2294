package revision

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/db"
)

// Store keeps the revisions in the database.
type Store struct {
	db      *db.DB
	changes *changelog.Store
}

// NewStore returns the revisions in d.
func NewStore(d *db.DB) *Store { return &Store{db: d, changes: changelog.NewStore(d)} }

// row is the revision of one project.
type row struct {
	bun.BaseModel `bun:"table:flag_stamps,alias:r"`

	ProjectID int64 `bun:",pk"`
	Stamp     int64
}

// Change runs fn in one transaction that holds the lock of the project and
// advances its revision.
func (s *Store) Change(ctx context.Context, projectID int64, fn func(ctx context.Context) error) error {
	return s.db.Tx(ctx, func(ctx context.Context) error {
		if err := s.advance(ctx, projectID); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// Touch advances the revision of a project after a change of its group types:
// every process loads the project again, and clients that follow changes are
// notified. It joins the transaction in ctx, and then holds the lock of the
// project until the end of the transaction.
func (s *Store) Touch(ctx context.Context, projectID int64) error {
	return s.Change(ctx, projectID, func(ctx context.Context) error {
		return s.changes.Record(ctx, changelog.Change{ProjectID: projectID, At: time.Now(), Kind: changelog.GroupTypes, Operation: changelog.Updated})
	})
}

// advance advances the revision in the transaction in ctx.
func (s *Store) advance(ctx context.Context, projectID int64) error {
	_, err := s.db.Write(ctx).NewInsert().Model(&row{ProjectID: projectID, Stamp: 1}).
		On("CONFLICT (project_id) DO UPDATE").Set("stamp = r.stamp + 1").Exec(ctx)
	if err != nil {
		return fmt.Errorf("advance revision of project %d: %w", projectID, err)
	}
	s.db.AfterCommit(ctx, s.db.Wakes.Flags.Publish)
	return nil
}

// AfterCommit runs fn when the transaction in ctx is committed.
func (s *Store) AfterCommit(ctx context.Context, fn func()) { s.db.AfterCommit(ctx, fn) }

// Of returns the revision of one project, 0 if it never had flags.
func (s *Store) Of(ctx context.Context, projectID int64) (int64, error) {
	var n int64
	err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).Column("stamp").Where("project_id = ?", projectID).Scan(ctx, &n)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read revision of project %d: %w", projectID, err)
	}
	return n, nil
}

// All returns the revision of every project that ever had flags or cohorts.
func (s *Store) All(ctx context.Context) (map[int64]int64, error) {
	var rows []row
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read revisions of projects: %w", err)
	}
	out := make(map[int64]int64, len(rows))
	for _, r := range rows {
		out[r.ProjectID] = r.Stamp
	}
	return out, nil
}

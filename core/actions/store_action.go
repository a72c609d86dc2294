package actions

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

// Store stores actions. Service enforces the rules.
type Store struct{ db *db.DB }

// NewStore returns the store of actions in d.
func NewStore(d *db.DB) *Store { return &Store{db: d} }

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// writeLocked runs fn in a transaction that increments the revision of the
// project's actions first: the row stays locked until the end.
func (s *Store) writeLocked(ctx context.Context, projectID int64, fn func(ctx context.Context) error) error {
	return s.db.Tx(ctx, func(ctx context.Context) error {
		if err := s.Touch(ctx, projectID); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// Touch increments the revision of a project after a change of what its
// actions are compiled from. It joins the transaction in ctx.
func (s *Store) Touch(ctx context.Context, projectID int64) error {
	_, err := s.db.Write(ctx).NewInsert().Model(&revisionRow{ProjectID: projectID, Stamp: 1}).
		On("CONFLICT (project_id) DO UPDATE").Set("stamp = r.stamp + 1").Exec(ctx)
	if err != nil {
		return fmt.Errorf("increment the revision of actions of project %d: %w", projectID, err)
	}
	s.db.AfterCommit(ctx, s.db.Wakes.Actions.Publish)
	return nil
}

// Revisions returns the revision of each project that ever had actions. It
// changes with each write, of whichever process.
func (s *Store) Revisions(ctx context.Context) (map[int64]int64, error) {
	var rows []revisionRow
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the revisions of actions: %w", err)
	}
	out := make(map[int64]int64, len(rows))
	for _, r := range rows {
		out[r.ProjectID] = r.Stamp
	}
	return out, nil
}

// revisionRow is a row of action_stamps: the revision of a project's actions.
type revisionRow struct {
	bun.BaseModel `bun:"table:action_stamps,alias:r"`

	ProjectID int64 `bun:",pk"`
	Stamp     int64
}

// actionRow is a row of actions.
type actionRow struct {
	bun.BaseModel `bun:"table:actions,alias:a"`

	ID           int64 `bun:"id,pk,autoincrement"`
	ProjectID    int64
	Name         string
	Description  string
	Tags         string
	Steps        string
	Deleted      bool
	PostToChat   bool
	Format       string
	Destinations string
	PinnedAt     sql.NullInt64
	CreatedBy    int64
	CreatedAt    int64
	UpdatedAt    int64
	CalculatedAt int64
	Version      int64
}

func rowOf(a *Action) *actionRow {
	r := &actionRow{
		ID: a.ID, ProjectID: a.ProjectID, Name: a.Name, Description: a.Description, Tags: string(mustJSON(a.Tags)),
		Steps: string(mustJSON(a.Steps)), Deleted: a.Deleted, PostToChat: a.PostToChat, Format: a.Format,
		Destinations: string(mustJSON(a.Destinations)), CreatedBy: a.CreatedBy, CreatedAt: a.CreatedAt.UnixMicro(),
		UpdatedAt: a.UpdatedAt.UnixMicro(), CalculatedAt: a.CalculatedAt.UnixMicro(), Version: a.Version,
	}
	if a.PinnedAt != nil {
		r.PinnedAt = sql.NullInt64{Int64: a.PinnedAt.UnixMicro(), Valid: true}
	}
	return r
}

// mustJSON is v as JSON.
func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // a bug: these types always marshal
	}
	return raw
}

func (r *actionRow) action() (Action, error) {
	a := Action{
		ID: r.ID, ProjectID: r.ProjectID, Name: r.Name, Description: r.Description, Deleted: r.Deleted,
		PostToChat: r.PostToChat, Format: r.Format, CreatedBy: r.CreatedBy, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
		UpdatedAt: time.UnixMicro(r.UpdatedAt).UTC(), CalculatedAt: time.UnixMicro(r.CalculatedAt).UTC(), Version: r.Version,
	}
	if r.PinnedAt.Valid {
		at := time.UnixMicro(r.PinnedAt.Int64).UTC()
		a.PinnedAt = &at
	}
	err := errors.Join(json.Unmarshal([]byte(r.Tags), &a.Tags), json.Unmarshal([]byte(r.Steps), &a.Steps),
		json.Unmarshal([]byte(r.Destinations), &a.Destinations))
	if err != nil {
		return a, fmt.Errorf("read action %d: %w", r.ID, err)
	}
	return a, nil
}

// Get returns an action of the project, also a deleted one, or NotFound.
func (s *Store) Get(ctx context.Context, projectID, id int64) (Action, error) {
	var row actionRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("project_id = ? AND id = ?", projectID, id).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Action{}, errNotFound
	case err != nil:
		return Action{}, fmt.Errorf("read action %d: %w", id, err)
	}
	return row.action()
}

// Query selects and pages actions.
type Query struct {
	Search        string // part of the name or description, case-insensitive
	Tags          []string
	CreatedBy     int64
	Deleted       bool // deleted actions in place of the others
	Limit, Offset int  // a Limit of 0 does not limit
}

// list returns the actions that are not deleted, or those that are, last counted
// first, then by name, and their number without the limit.
func (s *Store) list(ctx context.Context, projectID int64, q Query) ([]Action, int, error) {
	var rows []actionRow
	query := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ?", projectID)
	if q.Deleted {
		query = query.Where("deleted")
	} else {
		query = query.Where("NOT deleted")
	}
	if q.Search != "" {
		like := db.Contains(q.Search) // LOWER in the database folds both sides alike
		query = query.Where(`(LOWER(name) LIKE LOWER(?) ESCAPE '!' OR LOWER(description) LIKE LOWER(?) ESCAPE '!')`, like, like)
	}
	for _, tag := range q.Tags {
		query = query.Where(`tags LIKE ? ESCAPE '!'`, db.Contains(string(mustJSON(tag))))
	}
	if q.CreatedBy != 0 {
		query = query.Where("created_by = ?", q.CreatedBy)
	}
	total, err := query.Clone().Count(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("count actions: %w", err)
	}
	query = query.OrderExpr("calculated_at DESC, name, id")
	if q.Limit > 0 {
		query = query.Limit(int64(q.Limit)).Offset(int64(q.Offset))
	}
	if err := query.Scan(ctx); err != nil {
		return nil, 0, fmt.Errorf("list actions: %w", err)
	}
	out := make([]Action, 0, len(rows))
	for i := range rows {
		a, err := rows[i].action()
		if err != nil {
			return nil, 0, err
		}
		out = append(out, a)
	}
	return out, int(total), nil
}

// listActive reads the actions of a project that are not deleted. Unreadable
// ones are left out and returned as the error broken.
func (s *Store) listActive(ctx context.Context, projectID int64) (list []Action, broken, err error) {
	var rows []actionRow
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND NOT deleted", projectID).OrderExpr("id").Scan(ctx); err != nil {
		return nil, nil, fmt.Errorf("read the actions of project %d: %w", projectID, err)
	}
	var problems []error
	for i := range rows {
		a, err := rows[i].action()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, a)
	}
	return list, errors.Join(problems...), nil
}

// idByName returns the id of the action with a name, 0 if there is none.
func (s *Store) idByName(ctx context.Context, projectID int64, name string) (int64, error) {
	var id int64
	err := s.db.Read(ctx).NewSelect().Table("actions").Column("id").
		Where("project_id = ? AND name = ? AND NOT deleted", projectID, name).Limit(1).Scan(ctx, &id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("find action by name: %w", err)
	}
	return id, nil
}

// insert stores a new action and sets its id.
func (s *Store) insert(ctx context.Context, a *Action) error {
	row := rowOf(a)
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store an action: %w", err)
	}
	a.ID = row.ID
	return nil
}

// update stores a changed action.
func (s *Store) update(ctx context.Context, a *Action) error {
	if _, err := s.db.Write(ctx).NewUpdate().Model(rowOf(a)).WherePK().Exec(ctx); err != nil {
		return fmt.Errorf("store action %d: %w", a.ID, err)
	}
	return nil
}

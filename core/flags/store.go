package flags

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/access"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/history"
	"github.com/guidonhq/guidon/core/flags/revision"
)

// Store keeps flags, their versions and role access in the database.
// It is composed by topic. It checks no rules; Service does. Methods join the
// transaction in their context.
type Store struct {
	table
	flagStore
	*access.Store
	versions *history.Versions
}

// flagStore keeps the flags themselves.
type flagStore struct{ table }

// table is what the topics have in common.
type table struct{ db *db.DB }

// NewStore returns the store of flags in d.
func NewStore(d *db.DB) *Store {
	t := table{d}
	return &Store{t, flagStore{t}, access.NewStore(d), history.NewVersions(d)}
}

// addVersion stores the fields of f as a version.
func (s *Store) addVersion(ctx context.Context, f *Flag) error {
	return s.versions.Add(ctx, f.ID, f.Version, history.Version{State: document.Encode(f.Fields), By: f.UpdatedBy, At: f.UpdatedAt})
}

// version returns a version of a flag with its fields, and whether it exists.
func (s *Store) version(ctx context.Context, flagID, version int64) (fields Fields, v history.Version, ok bool, err error) {
	if v, ok, err = s.versions.Get(ctx, flagID, version); err != nil || !ok {
		return fields, v, false, err
	}
	if err := json.Unmarshal(v.State, &fields); err != nil {
		return fields, v, false, fmt.Errorf("read version %d of flag %d: %w", version, flagID, err)
	}
	fields.setDefaults()
	return fields, v, true, nil
}

// flagRow is a row of feature_flags with the joined time of the last call:
// one field for each column.
type flagRow struct {
	bun.BaseModel `bun:"table:feature_flags,alias:f"`

	ID                   int64 `bun:"id,pk,autoincrement"`
	ProjectID            int64
	Key                  string
	Name                 string
	Filters              string
	Active               bool
	Deleted              bool
	CreatedBy            int64
	CreatedAt            int64
	UpdatedBy            int64
	UpdatedAt            int64
	Version              int64
	ExperienceContinuity bool
	RollbackConditions   sql.NullString
	PerformedRollback    sql.NullBool
	Tags                 string
	UsageDashboard       int64
	AnalyticsDashboards  string
	EnrichedAnalytics    bool
	RemoteConfiguration  bool `bun:"is_remote_configuration"`
	EncryptedPayloads    bool `bun:"has_encrypted_payloads"`
	Search               string
	Multivariate         bool
	FullyRolledOut       bool
	BucketingIdentifier  string
	EvaluationRuntime    string
	EvaluationContexts   string

	LastCalledAt sql.NullInt64 `bun:"last_called_at,scanonly"`
}

func rowOf(f *Flag) *flagRow {
	r := &flagRow{
		ID: f.ID, ProjectID: f.ProjectID, Key: f.Key, Name: f.Name, Filters: string(f.Filters),
		Active: f.Active, Deleted: f.Deleted, CreatedBy: f.CreatedBy, CreatedAt: f.CreatedAt.UnixMicro(),
		UpdatedBy: f.UpdatedBy, UpdatedAt: f.UpdatedAt.UnixMicro(), Version: f.Version,
		ExperienceContinuity: f.ExperienceContinuity, Tags: string(document.Encode(f.Tags)),
		AnalyticsDashboards: string(document.Encode(f.AnalyticsDashboards)), EnrichedAnalytics: f.EnrichedAnalytics,
		Search:              strings.ToLower(f.Key + "\n" + f.Name),
		Multivariate:        document.HasVariants(f.Filters),
		FullyRolledOut:      document.FullyRolledOut(f.Filters),
		BucketingIdentifier: f.Bucketing, EvaluationRuntime: f.Runtime, EvaluationContexts: string(document.Encode(f.Contexts)),
		RemoteConfiguration: f.RemoteConfiguration, EncryptedPayloads: f.EncryptedPayloads,
	}
	if len(f.RollbackConditions) > 0 && !document.IsNull(f.RollbackConditions) {
		r.RollbackConditions = sql.NullString{String: string(f.RollbackConditions), Valid: true}
	}
	if f.UsageDashboard != nil {
		r.UsageDashboard = *f.UsageDashboard
	}
	if f.PerformedRollback != nil {
		r.PerformedRollback = sql.NullBool{Bool: *f.PerformedRollback, Valid: true}
	}
	return r
}

func (r *flagRow) flag() (*Flag, error) {
	f := &Flag{
		ID: r.ID, ProjectID: r.ProjectID, Version: r.Version,
		CreatedBy: r.CreatedBy, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(), UpdatedBy: r.UpdatedBy, UpdatedAt: time.UnixMicro(r.UpdatedAt).UTC(),
		Fields: Fields{
			Key: r.Key, Name: r.Name, Filters: json.RawMessage(r.Filters), Active: r.Active, Deleted: r.Deleted,
			ExperienceContinuity: r.ExperienceContinuity, RollbackConditions: json.RawMessage("null"), EnrichedAnalytics: r.EnrichedAnalytics,
			Bucketing: r.BucketingIdentifier, Runtime: r.EvaluationRuntime,
			RemoteConfiguration: r.RemoteConfiguration, EncryptedPayloads: r.EncryptedPayloads,
		},
	}
	if r.UsageDashboard != 0 {
		f.UsageDashboard = &r.UsageDashboard
	}
	if r.RollbackConditions.Valid {
		f.RollbackConditions = json.RawMessage(r.RollbackConditions.String)
	}
	if r.PerformedRollback.Valid {
		f.PerformedRollback = &r.PerformedRollback.Bool
	}
	if r.LastCalledAt.Valid {
		f.LastCalled = time.UnixMicro(r.LastCalledAt.Int64).UTC()
	}
	if err := json.Unmarshal([]byte(r.Tags), &f.Tags); err != nil {
		return nil, fmt.Errorf("read tags of flag %d: %w", r.ID, err)
	}
	if err := json.Unmarshal([]byte(r.AnalyticsDashboards), &f.AnalyticsDashboards); err != nil {
		return nil, fmt.Errorf("read dashboards of flag %d: %w", r.ID, err)
	}
	if err := json.Unmarshal([]byte(r.EvaluationContexts), &f.Contexts); err != nil {
		return nil, fmt.Errorf("read contexts of flag %d: %w", r.ID, err)
	}
	f.setDefaults()
	return f, nil
}

// flags starts a query for flags with the time of their last call.
func (s flagStore) flags(ctx context.Context, dest any) *bun.SelectQuery {
	return s.db.Read(ctx).NewSelect().Model(dest).
		ColumnExpr("f.*").ColumnExpr("c.last_called_at").
		Join("LEFT JOIN feature_flag_calls AS c ON c.flag_id = f.id")
}

// errNotFound is the error for a missing item and for one of another project.
var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// flag reads one flag of the project, also a deleted one.
func (s flagStore) flag(ctx context.Context, projectID, id int64) (*Flag, error) {
	return s.one(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("f.project_id = ?", projectID).Where("f.id = ?", id)
	})
}

// flagByKey reads the flag that has the key, also a deleted one.
func (s flagStore) flagByKey(ctx context.Context, projectID int64, key string) (*Flag, error) {
	return s.one(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("f.project_id = ?", projectID).Where("f.key = ?", key)
	})
}

// one reads the flag that where selects, or returns NotFound.
func (s flagStore) one(ctx context.Context, where func(*bun.SelectQuery) *bun.SelectQuery) (*Flag, error) {
	var row flagRow
	err := where(s.flags(ctx, &row)).Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read flag: %w", err)
	}
	return row.flag()
}

// insert stores a new flag and sets its id.
func (s flagStore) insert(ctx context.Context, f *Flag) error {
	row := rowOf(f)
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Returning("id").Exec(ctx); err != nil {
		return fmt.Errorf("store flag %q: %w", f.Key, err)
	}
	f.ID = row.ID
	return revision.Mark(ctx, s.db, f.ProjectID, revision.Flag, f.ID)
}

// update replaces the row of a flag.
func (s flagStore) update(ctx context.Context, f *Flag) error {
	if _, err := s.db.Write(ctx).NewUpdate().Model(rowOf(f)).WherePK().Exec(ctx); err != nil {
		return fmt.Errorf("store flag %d: %w", f.ID, err)
	}
	return revision.Mark(ctx, s.db, f.ProjectID, revision.Flag, f.ID)
}

// UnlinkDashboard removes a dashboard from the flags that show it.
func (s flagStore) UnlinkDashboard(ctx context.Context, projectID, id int64) error {
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

// KeyInEvents returns the key of a flag in the events of clients, "" if the flag
// does not exist.
func (s flagStore) KeyInEvents(ctx context.Context, projectID, flagID int64) (string, error) {
	f, err := s.flag(ctx, projectID, flagID)
	switch {
	case fault.Is(err, fault.NotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	return f.keyInEvents(), nil
}

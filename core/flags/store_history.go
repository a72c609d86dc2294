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

// versionRow is a row of feature_flag_versions.
type versionRow struct {
	bun.BaseModel `bun:"table:feature_flag_versions,alias:v"`

	FlagID    int64 `bun:",pk"`
	Version   int64 `bun:",pk"`
	State     string
	UserID    int64
	CreatedAt int64
}

// keepVersion remembers the state the flag has now.
func (s *Store) keepVersion(ctx context.Context, f *Flag) error {
	row := &versionRow{FlagID: f.ID, Version: f.Version, State: string(encode(f.state())), UserID: f.UpdatedBy, CreatedAt: f.UpdatedAt.UnixMicro()}
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Exec(ctx); err != nil {
		return fmt.Errorf("keep version %d of flag %d: %w", f.Version, f.ID, err)
	}
	return nil
}

// version reads the state a flag had, and whether it ever had that version.
func (s *Store) version(ctx context.Context, flagID, version int64) (state, bool, error) {
	var row versionRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("flag_id = ? AND version = ?", flagID, version).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return state{}, false, nil
	}
	if err != nil {
		return state{}, false, fmt.Errorf("read version %d of flag %d: %w", version, flagID, err)
	}
	var st state
	if err := json.Unmarshal([]byte(row.State), &st); err != nil {
		return state{}, false, fmt.Errorf("read version %d of flag %d: %w", version, flagID, err)
	}
	return st, true, nil
}

// activityRow is a row of flag_activity.
type activityRow struct {
	bun.BaseModel `bun:"table:flag_activity,alias:a"`

	ID        string `bun:",pk"`
	ProjectID int64
	Scope     string
	ItemID    string
	Activity  string
	UserID    int64
	UserName  string
	UserEmail string
	Detail    string
	CreatedAt int64
}

// log writes an entry of the activity log; call it inside the transaction of
// the change it tells of.
func (s *Store) log(ctx context.Context, e Entry) error {
	row := &activityRow{
		ID: e.ID, ProjectID: e.ProjectID, Scope: e.Scope, ItemID: e.ItemID, Activity: e.Activity, UserID: e.UserID,
		UserName: e.UserName, UserEmail: e.UserEmail, Detail: string(encode(e.Detail)), CreatedAt: e.CreatedAt.UnixMicro(),
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Exec(ctx); err != nil {
		return fmt.Errorf("log activity: %w", err)
	}
	return nil
}

// activity reads one page of the log, newest first, and how many entries
// there are. An empty itemID reads those of every item.
func (s *Store) activity(ctx context.Context, projectID int64, scope, itemID string, limit, offset int) ([]Entry, int, error) {
	var rows []activityRow
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND scope = ?", projectID, scope)
	if itemID != "" {
		q = q.Where("item_id = ?", itemID)
	}
	total, err := q.OrderExpr("created_at DESC, id DESC").Limit(int64(limit)).Offset(int64(offset)).ScanAndCount(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read activity: %w", err)
	}
	entries := make([]Entry, 0, len(rows))
	for _, r := range rows {
		e := Entry{
			ID: r.ID, ProjectID: r.ProjectID, Scope: r.Scope, ItemID: r.ItemID, Activity: r.Activity, UserID: r.UserID,
			UserName: r.UserName, UserEmail: r.UserEmail, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
		}
		if err := json.Unmarshal([]byte(r.Detail), &e.Detail); err != nil {
			return nil, 0, fmt.Errorf("read activity %s: %w", r.ID, err)
		}
		entries = append(entries, e)
	}
	return entries, int(total), nil
}

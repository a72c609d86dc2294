package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/uptrace/bun"
)

// activityRow is a row of action_activity.
type activityRow struct {
	bun.BaseModel `bun:"table:action_activity,alias:a"`

	ID        string `bun:",pk"`
	ProjectID int64
	ActionID  int64
	Activity  string
	UserID    int64
	UserName  string
	UserEmail string
	Detail    string
	CreatedAt int64
}

// log writes an entry; call it inside the transaction of the change it tells of.
func (s *Store) log(ctx context.Context, e ActivityEntry) error {
	id, err := strconv.ParseInt(e.ItemID, 10, 64)
	if err != nil {
		return fmt.Errorf("log activity of action %q: %w", e.ItemID, err)
	}
	row := &activityRow{
		ID: e.ID, ProjectID: e.ProjectID, ActionID: id, Activity: e.Activity, UserID: e.UserID,
		UserName: e.UserName, UserEmail: e.UserEmail, Detail: string(encode(e.Detail)), CreatedAt: e.CreatedAt.UnixMicro(),
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Exec(ctx); err != nil {
		return fmt.Errorf("log activity: %w", err)
	}
	return nil
}

// activity reads one page of the log, newest first, and how many entries there
// are; an actionID of 0 reads those of every action.
func (s *Store) activity(ctx context.Context, projectID, actionID int64, limit, offset int) ([]ActivityEntry, int, error) {
	var rows []activityRow
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ?", projectID)
	if actionID != 0 {
		q = q.Where("action_id = ?", actionID)
	}
	total, err := q.OrderExpr("created_at DESC, id DESC").Limit(int64(limit)).Offset(int64(offset)).ScanAndCount(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read activity: %w", err)
	}
	entries := make([]ActivityEntry, 0, len(rows))
	for _, r := range rows {
		e := ActivityEntry{
			ID: r.ID, ProjectID: r.ProjectID, ItemID: strconv.FormatInt(r.ActionID, 10), Activity: r.Activity, UserID: r.UserID,
			UserName: r.UserName, UserEmail: r.UserEmail, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
		}
		if err := json.Unmarshal([]byte(r.Detail), &e.Detail); err != nil {
			return nil, 0, fmt.Errorf("read activity %s: %w", r.ID, err)
		}
		entries = append(entries, e)
	}
	return entries, int(total), nil
}

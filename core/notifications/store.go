package notifications

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/tracing"
)

// store is the SQL of the package. Its methods join the transaction in ctx.
type store struct{ db *db.DB }

// row is a row of notifications. It has one field per column.
type row struct {
	bun.BaseModel `bun:"table:notifications,alias:n"`

	ID          int64 `bun:"id,pk,autoincrement"`
	ProjectID   int64
	ActionID    int64
	Notifier    string
	Destination string
	Key         string
	EventUUID   string `bun:"event_uuid"`
	Text        string
	Message     string
	Suppressed  int64
	State       State
	Attempts    int64
	NextAt      int64
	LeasedUntil int64
	LeasedBy    string
	CreatedAt   int64
	ExpiresAt   int64
	SettledAt   sql.NullInt64
	MessageID   string
	ErrorCode   string
	Error       string
	Trace       string // a tracing.Origin, "" without one
}

func (r *row) delivery() Delivery {
	d := Delivery{
		ID: r.ID, ProjectID: r.ProjectID, ActionID: r.ActionID, Notifier: r.Notifier, Destination: r.Destination, Key: r.Key,
		EventUUID: r.EventUUID, Text: r.Text, Message: json.RawMessage(r.Message), LeasedUntil: fromMicros(r.LeasedUntil), Suppressed: r.Suppressed, State: r.State, Attempts: r.Attempts,
		NextAt: fromMicros(r.NextAt), CreatedAt: fromMicros(r.CreatedAt), ExpiresAt: fromMicros(r.ExpiresAt), MessageID: r.MessageID,
		ErrorCode: r.ErrorCode, Error: r.Error, Origin: tracing.ParseOrigin(r.Trace),
	}
	if r.SettledAt.Valid {
		at := fromMicros(r.SettledAt.Int64)
		d.SettledAt = &at
	}
	return d
}

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// add writes a new notification and reports whether it did. An existing key is
// left unchanged.
func (s *store) add(ctx context.Context, d *Delivery) (bool, error) {
	r := &row{
		ProjectID: d.ProjectID, ActionID: d.ActionID, Notifier: d.Notifier, Destination: d.Destination, Key: d.Key, EventUUID: d.EventUUID,
		Text: d.Text, Message: string(d.Message), Suppressed: d.Suppressed, State: Waiting, NextAt: d.NextAt.UnixMicro(), CreatedAt: d.CreatedAt.UnixMicro(),
		ExpiresAt: d.ExpiresAt.UnixMicro(), Trace: d.Origin.String(),
	}
	done, err := s.db.Write(ctx).NewInsert().Model(r).On("CONFLICT (key) DO NOTHING").Returning("NULL").Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("queue a notification: %w", err)
	}
	n, _ := done.RowsAffected() // both drivers know
	return n > 0, nil
}

// lane is one destination of one notifier.
type lane struct{ Notifier, Destination string }

// due lists the destinations with a due notification that is not leased.
func (s *store) due(ctx context.Context, now time.Time) ([]lane, error) {
	var lanes []lane
	err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).Distinct().Column("notifier", "destination").
		Where("state = 'waiting' AND next_at <= ? AND leased_until <= ?", now.UnixMicro(), now.UnixMicro()).Scan(ctx, &lanes)
	if err != nil {
		return nil, fmt.Errorf("find notifications: %w", err)
	}
	return lanes, nil
}

// claim leases the oldest due notification of a destination for owner, nil if there
// is none. Two processes never lease the same one.
func (s *store) claim(ctx context.Context, l lane, owner string, now time.Time, lease time.Duration) (*Delivery, error) {
	due, order, skip := "next_at <= ?", "next_at, id", ""
	if s.db.Postgres() { // several nodes write next_at: the clock of another may be ahead
		due, order, skip = "(next_at <= ? OR attempts = 0)", "id", " FOR UPDATE SKIP LOCKED"
	}
	var rows []row
	// Raw: bun cannot lock the rows of a subquery.
	err := s.db.Write(ctx).NewRaw(`UPDATE notifications SET leased_until = ?, leased_by = ? WHERE id IN (
		SELECT id FROM notifications WHERE notifier = ? AND destination = ? AND state = 'waiting' AND `+due+` AND leased_until <= ?
		ORDER BY `+order+` LIMIT 1`+skip+`) RETURNING *`,
		now.Add(lease).UnixMicro(), owner, l.Notifier, l.Destination, now.UnixMicro(), now.UnixMicro()).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("lease a notification: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	d := rows[0].delivery()
	return &d, nil
}

// endLeases ends the leases of owner, whose process has ended.
func (s *store) endLeases(ctx context.Context, owner string) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*row)(nil)).Set("leased_until = 0").
		Where("state = 'waiting' AND leased_by = ? AND leased_until > 0", owner).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end leases of notifications: %w", err)
	}
	return nil
}

// knownKeys returns which of the keys exist.
func (s *store) knownKeys(ctx context.Context, keys []string) (map[string]bool, error) {
	out := map[string]bool{}
	for part := range slices.Chunk(keys, 500) {
		var found []string
		err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).Column("key").Where("key IN (?)", bun.List(part)).Scan(ctx, &found)
		if err != nil {
			return nil, fmt.Errorf("find notifications: %w", err)
		}
		for _, key := range found {
			out[key] = true
		}
	}
	return out, nil
}

// settle stores the state of a notification, unless another process leased it
// meanwhile.
func (s *store) settle(ctx context.Context, d *Delivery) error {
	var settled sql.NullInt64
	if d.SettledAt != nil {
		settled = sql.NullInt64{Int64: d.SettledAt.UnixMicro(), Valid: true}
	}
	_, err := s.db.Write(ctx).NewUpdate().Model((*row)(nil)).
		Set("state = ?", d.State).Set("attempts = ?", d.Attempts).Set("next_at = ?", d.NextAt.UnixMicro()).
		Set("leased_until = 0").Set("settled_at = ?", settled).Set("message_id = ?", d.MessageID).
		Set("error_code = ?", d.ErrorCode).Set("error = ?", d.Error).
		Where("id = ? AND state = 'waiting' AND leased_until = ?", d.ID, d.LeasedUntil.UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write notification state: %w", err)
	}
	return nil
}

// expire marks late notifications as expired, and returns their number.
func (s *store) expire(ctx context.Context, now time.Time) (int64, error) {
	done, err := s.db.Write(ctx).NewUpdate().Model((*row)(nil)).Set("state = 'expired'").Set("settled_at = ?", now.UnixMicro()).
		Set("error_code = CASE WHEN error_code = '' THEN 'expired' ELSE error_code END").
		Where("state = 'waiting' AND expires_at <= ? AND leased_until <= ?", now.UnixMicro(), now.UnixMicro()).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("expire notifications: %w", err)
	}
	n, _ := done.RowsAffected() // both drivers know
	return n, nil
}

// deleteSettled deletes at most step notifications that were settled before
// then, and returns their number.
func (s *store) deleteSettled(ctx context.Context, then time.Time, step int) (int64, error) {
	old := s.db.Write(ctx).NewSelect().Model((*row)(nil)).Column("id").
		Where("settled_at IS NOT NULL AND settled_at < ?", then.UnixMicro()).OrderExpr("settled_at").Limit(int64(step))
	done, err := s.db.Write(ctx).NewDelete().Model((*row)(nil)).Where("id IN (?)", old).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("delete notifications: %w", err)
	}
	n, _ := done.RowsAffected()
	return n, nil
}

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// get reads one delivery of an action.
func (s *store) get(ctx context.Context, projectID, actionID, id int64) (Delivery, error) {
	var r row
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("project_id = ? AND action_id = ? AND id = ?", projectID, actionID, id).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Delivery{}, errNotFound
	case err != nil:
		return Delivery{}, fmt.Errorf("read delivery %d: %w", id, err)
	}
	return r.delivery(), nil
}

// list reads a page of the deliveries of an action, newest first, and their
// total number. An empty state is any.
func (s *store) list(ctx context.Context, projectID, actionID int64, state State, limit, offset int) ([]Delivery, int, error) {
	var rows []row
	q := s.db.Read(ctx).NewSelect().Model(&rows).ExcludeColumn("message").Where("project_id = ? AND action_id = ?", projectID, actionID)
	if state != "" {
		q = q.Where("state = ?", state)
	}
	total, err := q.OrderExpr("id DESC").Limit(int64(limit)).Offset(int64(offset)).ScanAndCount(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("list deliveries: %w", err)
	}
	out := make([]Delivery, len(rows))
	for i := range rows {
		out[i] = rows[i].delivery()
	}
	return out, int(total), nil
}

// waiting counts the waiting notifications.
func (s *store) waiting(ctx context.Context) (int64, error) {
	n, err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).Where("state = 'waiting'").Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count notifications: %w", err)
	}
	return n, nil
}

// requeue makes a notification due again, unless it is leased or was
// delivered.
func (s *store) requeue(ctx context.Context, d *Delivery, expires time.Time) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*row)(nil)).Set("state = 'waiting'").Set("attempts = 0").
		Set("next_at = ?", d.NextAt.UnixMicro()).Set("leased_until = 0").Set("expires_at = ?", expires.UnixMicro()).
		Set("settled_at = NULL").Set("error_code = ''").Set("error = ''").
		Where("id = ? AND state <> 'delivered' AND leased_until <= ?", d.ID, d.NextAt.UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("queue a notification again: %w", err)
	}
	return nil
}

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
)

// store is the SQL of the room. Its methods work in the transaction of their
// context when there is one.
type store struct{ db *db.DB }

// row is a row of notifications.
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
	CreatedAt   int64
	ExpiresAt   int64
	SettledAt   sql.NullInt64
	MessageID   string
	ErrorCode   string
	Error       string
}

func (r *row) delivery() Delivery {
	d := Delivery{
		ID: r.ID, ProjectID: r.ProjectID, ActionID: r.ActionID, Notifier: r.Notifier, Destination: r.Destination, Key: r.Key,
		EventUUID: r.EventUUID, Text: r.Text, Message: json.RawMessage(r.Message), LeasedUntil: micros(r.LeasedUntil), Suppressed: r.Suppressed, State: r.State, Attempts: r.Attempts,
		NextAt: micros(r.NextAt), CreatedAt: micros(r.CreatedAt), ExpiresAt: micros(r.ExpiresAt), MessageID: r.MessageID,
		ErrorCode: r.ErrorCode, Error: r.Error,
	}
	if r.SettledAt.Valid {
		at := micros(r.SettledAt.Int64)
		d.SettledAt = &at
	}
	return d
}

func micros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// add writes a new message and reports whether it did: one whose key is there
// already is left alone.
func (s *store) add(ctx context.Context, d *Delivery) (bool, error) {
	r := &row{
		ProjectID: d.ProjectID, ActionID: d.ActionID, Notifier: d.Notifier, Destination: d.Destination, Key: d.Key, EventUUID: d.EventUUID,
		Text: d.Text, Message: string(d.Message), Suppressed: d.Suppressed, State: Waiting, NextAt: d.NextAt.UnixMicro(), CreatedAt: d.CreatedAt.UnixMicro(),
		ExpiresAt: d.ExpiresAt.UnixMicro(),
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

// due lists the destinations that have something to send now and that nobody
// is sending to.
func (s *store) due(ctx context.Context, now time.Time) ([]lane, error) {
	var lanes []lane
	err := s.db.Read(ctx).NewRaw(`SELECT DISTINCT notifier, destination FROM notifications
		WHERE state = 'waiting' AND next_at <= ? AND leased_until <= ?`, now.UnixMicro(), now.UnixMicro()).Scan(ctx, &lanes)
	if err != nil {
		return nil, fmt.Errorf("look for notifications: %w", err)
	}
	return lanes, nil
}

// claim takes the oldest message of a destination for so long. Two processes
// never have the same one.
func (s *store) claim(ctx context.Context, l lane, now time.Time, lease time.Duration) (*Delivery, error) {
	skip := ""
	if s.db.Postgres() {
		skip = " FOR UPDATE SKIP LOCKED"
	}
	var rows []row
	err := s.db.Write(ctx).NewRaw(`UPDATE notifications SET leased_until = ? WHERE id IN (
		SELECT id FROM notifications WHERE notifier = ? AND destination = ? AND state = 'waiting' AND next_at <= ? AND leased_until <= ?
		ORDER BY next_at, id LIMIT 1`+skip+`) RETURNING *`,
		now.Add(lease).UnixMicro(), l.Notifier, l.Destination, now.UnixMicro(), now.UnixMicro()).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("take a notification: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	d := rows[0].delivery()
	return &d, nil
}

// sent tells which of the keys there are messages for.
func (s *store) sent(ctx context.Context, keys []string) (map[string]bool, error) {
	out := map[string]bool{}
	for part := range slices.Chunk(keys, 500) {
		var found []string
		if err := s.db.Read(ctx).NewRaw("SELECT key FROM notifications WHERE key IN (?)", bun.List(part)).Scan(ctx, &found); err != nil {
			return nil, fmt.Errorf("look for notifications: %w", err)
		}
		for _, key := range found {
			out[key] = true
		}
	}
	return out, nil
}

// settle writes what became of a message, unless somebody else has it by now.
func (s *store) settle(ctx context.Context, d *Delivery) error {
	var settled sql.NullInt64
	if d.SettledAt != nil {
		settled = sql.NullInt64{Int64: d.SettledAt.UnixMicro(), Valid: true}
	}
	_, err := s.db.Write(ctx).NewRaw(`UPDATE notifications SET state = ?, attempts = ?, next_at = ?, leased_until = 0, settled_at = ?,
		message_id = ?, error_code = ?, error = ? WHERE id = ? AND state = 'waiting' AND leased_until = ?`,
		d.State, d.Attempts, d.NextAt.UnixMicro(), settled, d.MessageID, d.ErrorCode, d.Error, d.ID, d.LeasedUntil.UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write what became of a notification: %w", err)
	}
	return nil
}

// expire gives up what is too late, and returns how many there were.
func (s *store) expire(ctx context.Context, now time.Time) (int64, error) {
	done, err := s.db.Write(ctx).NewRaw(`UPDATE notifications SET state = 'expired', settled_at = ?,
		error_code = CASE WHEN error_code = '' THEN 'expired' ELSE error_code END
		WHERE state = 'waiting' AND expires_at <= ? AND leased_until <= ?`,
		now.UnixMicro(), now.UnixMicro(), now.UnixMicro()).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("expire notifications: %w", err)
	}
	n, _ := done.RowsAffected() // both drivers know
	return n, nil
}

// forget removes what was settled before then, a step of it; it returns how
// many that were.
func (s *store) forget(ctx context.Context, then time.Time, step int) (int64, error) {
	done, err := s.db.Write(ctx).NewRaw(`DELETE FROM notifications WHERE id IN (
		SELECT id FROM notifications WHERE settled_at IS NOT NULL AND settled_at < ? ORDER BY settled_at LIMIT ?)`, then.UnixMicro(), step).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("forget notifications: %w", err)
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

// list reads a page of the deliveries of an action, newest first, and how many
// there are. An empty state is any.
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

// waiting counts what waits, for the metric.
func (s *store) waiting(ctx context.Context) (n int, err error) {
	err = s.db.Read(ctx).NewRaw("SELECT count(*) FROM notifications WHERE state = 'waiting'").Scan(ctx, &n)
	if err != nil {
		return 0, fmt.Errorf("count notifications: %w", err)
	}
	return n, nil
}

// again makes a message wait once more, unless somebody is sending it now or it
// was delivered.
func (s *store) again(ctx context.Context, d *Delivery, expires time.Time) error {
	_, err := s.db.Write(ctx).NewRaw(`UPDATE notifications SET state = 'waiting', attempts = 0, next_at = ?, leased_until = 0, expires_at = ?,
		settled_at = NULL, error_code = '', error = '' WHERE id = ? AND state <> 'delivered' AND leased_until <= ?`,
		d.NextAt.UnixMicro(), expires.UnixMicro(), d.ID, d.NextAt.UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("queue a notification again: %w", err)
	}
	return nil
}

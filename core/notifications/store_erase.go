package notifications

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/uptrace/bun"
)

// eraseChunk is how many rows one query of an erasure reads.
const eraseChunk = 200

// isAbout reports whether a stored message is about an event of one of the
// distinct ids.
func isAbout(message string, distinctIDs []string) bool {
	var m struct {
		Event struct {
			DistinctID string `json:"distinct_id"`
		} `json:"event"`
	}
	return json.Unmarshal([]byte(message), &m) == nil && slices.Contains(distinctIDs, m.Event.DistinctID)
}

// erase deletes the notifications about distinct ids, in any state, and returns
// their number.
func (s *store) erase(ctx context.Context, projectID int64, distinctIDs []string) (total int64, err error) {
	for last := int64(0); ; {
		var rows []row
		err := s.db.Read(ctx).NewSelect().Model(&rows).Column("id", "message").
			Where("project_id = ? AND id > ?", projectID, last).OrderExpr("id").Limit(eraseChunk).Scan(ctx)
		if err != nil {
			return total, fmt.Errorf("find notifications: %w", err)
		}
		if len(rows) == 0 {
			return total, nil
		}
		var ids []int64
		for i := range rows {
			if last = rows[i].ID; isAbout(rows[i].Message, distinctIDs) {
				ids = append(ids, last)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err := s.db.Tx(ctx, func(ctx context.Context) error { return s.eraseRows(ctx, ids) }); err != nil {
			return total, fmt.Errorf("erase notifications: %w", err)
		}
		total += int64(len(ids))
	}
}

// eraseRows deletes notifications, in the transaction of ctx. The suppressed messages that
// waiting ones report are counted in the next one of the same destination.
func (s *store) eraseRows(ctx context.Context, ids []int64) error {
	var gone []row
	err := s.db.Write(ctx).NewDelete().Model((*row)(nil)).Where("id IN (?)", bun.List(ids)).
		Returning("id, action_id, notifier, destination, state, suppressed").Scan(ctx, &gone)
	if err != nil {
		return err
	}
	for i := range gone {
		if g := &gone[i]; g.State == Waiting && g.Suppressed > 0 {
			if err := s.returnSuppressed(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// returnSuppressed adds the suppressed messages of a notification to their rate. A rate that
// has none yet is not due: it has no message to send.
func (s *store) returnSuppressed(ctx context.Context, r *row) error {
	first := s.db.Write(ctx).NewSelect().Model((*rateRow)(nil)).ColumnExpr("min(format)").
		Where("action_id = ? AND notifier = ? AND destination = ?", r.ActionID, r.Notifier, r.Destination)
	_, err := s.db.Write(ctx).NewUpdate().Model((*rateRow)(nil)).Set("suppressed = suppressed + ?", r.Suppressed).
		Set("due_at = CASE WHEN key = '' THEN ? ELSE due_at END", int64(math.MaxInt64)).
		Where("action_id = ? AND notifier = ? AND destination = ? AND format = (?)", r.ActionID, r.Notifier, r.Destination, first).Exec(ctx)
	return err
}

// eraseSuppressed removes the kept message of rates if it is about distinct ids.
// The other suppressed messages are still counted in the next one.
func (s *store) eraseSuppressed(ctx context.Context, projectID int64, distinctIDs []string) (total int64, err error) {
	var rows []rateRow
	err = s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND message <> ''", projectID).Scan(ctx)
	if err != nil {
		return 0, fmt.Errorf("find suppressed notifications: %w", err)
	}
	for i := range rows {
		r := &rows[i]
		if !isAbout(r.Message, distinctIDs) {
			continue
		}
		_, err := s.db.Write(ctx).NewUpdate().Model(r).Set("suppressed = suppressed - 1").Set("due_at = ?", int64(math.MaxInt64)).
			Set("key = '', event_uuid = '', message = ''").WherePK().Where("key = ?", r.Key).Exec(ctx)
		if err != nil {
			return total, fmt.Errorf("erase suppressed notifications: %w", err)
		}
		total++
	}
	return total, nil
}

// isLeased reports whether the notification still exists and is leased by this
// process.
func (s *store) isLeased(ctx context.Context, d *Delivery) (bool, error) {
	n, err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).
		Where("id = ? AND state = 'waiting' AND leased_until = ?", d.ID, d.LeasedUntil.UnixMicro()).Count(ctx)
	if err != nil {
		return false, fmt.Errorf("read notification %d: %w", d.ID, err)
	}
	return n > 0, nil
}

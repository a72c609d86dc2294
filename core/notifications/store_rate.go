package notifications

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// rateRow is a row of notification_rates: a token bucket and the suppressed
// notifications. It has one field per column.
type rateRow struct {
	bun.BaseModel `bun:"table:notification_rates,alias:r"`

	ActionID    int64  `bun:",pk"`
	Notifier    string `bun:",pk"`
	Destination string `bun:",pk"`
	Format      string `bun:",pk"`
	ProjectID   int64
	Tokens      float64
	At          int64
	Suppressed  int64
	DueAt       int64
	Key         string
	EventUUID   string `bun:"event_uuid"`
	Message     string

	latest *Post // latest suppressed post of this transaction; not rendered yet
}

// rate reads a rate; a new one has all its tokens. On PostgreSQL the row is
// locked until the transaction ends: lock several in the order of their keys.
func (s *store) rate(ctx context.Context, k rateKey, projectID int64, burst int, now time.Time) (*rateRow, error) {
	fresh := &rateRow{
		ActionID: k.action, Notifier: k.Notifier, Destination: k.Destination, Format: k.format, ProjectID: projectID, Tokens: float64(burst), At: now.UnixMicro(),
	}
	if s.db.Postgres() { // only an existing row can be locked
		if _, err := s.db.Write(ctx).NewInsert().Model(fresh).On("CONFLICT DO NOTHING").Returning("NULL").Exec(ctx); err != nil {
			return nil, fmt.Errorf("create the rate of action %d: %w", k.action, err)
		}
	}
	r := &rateRow{}
	q := s.db.Write(ctx).NewSelect().Model(r).
		Where("action_id = ? AND notifier = ? AND destination = ? AND format = ?", k.action, k.Notifier, k.Destination, k.format)
	if s.db.Postgres() {
		q = q.For("UPDATE")
	}
	err := q.Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return fresh, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the rate of action %d: %w", k.action, err)
	}
	return r, nil
}

// deleteRates deletes rates that were not used since then.
func (s *store) deleteRates(ctx context.Context, then time.Time) error {
	if _, err := s.db.Write(ctx).NewDelete().Model((*rateRow)(nil)).Where("suppressed = 0 AND at < ?", then.UnixMicro()).Exec(ctx); err != nil {
		return fmt.Errorf("delete rates: %w", err)
	}
	return nil
}

func (s *store) saveRate(ctx context.Context, r *rateRow) error {
	_, err := s.db.Write(ctx).NewInsert().Model(r).On("CONFLICT (action_id, notifier, destination, format) DO UPDATE").
		Set("tokens = EXCLUDED.tokens, at = EXCLUDED.at, suppressed = EXCLUDED.suppressed, due_at = EXCLUDED.due_at").
		Set("key = EXCLUDED.key, event_uuid = EXCLUDED.event_uuid, message = EXCLUDED.message, project_id = EXCLUDED.project_id").Exec(ctx)
	if err != nil {
		return fmt.Errorf("write the rate of action %d: %w", r.ActionID, err)
	}
	return nil
}

// overdue lists rates with suppressed notifications whose summary is due.
func (s *store) overdue(ctx context.Context, now time.Time, most int) ([]rateRow, error) {
	var rows []rateRow
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("suppressed > 0 AND due_at <= ?", now.UnixMicro()).OrderExpr("due_at").Limit(int64(most)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("find suppressed notifications: %w", err)
	}
	return rows, nil
}

package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// store keeps the counts of actions.
type store struct{ db *db.DB }

// countRow is a row of action_history.
type countRow struct {
	bun.BaseModel `bun:"table:action_history"`

	ActionID     int64  `bun:"action_id,pk"`
	ProjectID    int64  `bun:"project_id"`
	Serial       int64  `bun:"serial"`
	Fingerprint  string `bun:"fingerprint"`
	Erased       int64  `bun:"erased"`
	LastRow      int64  `bun:"last_row"`
	Undecided    int64  `bun:"undecided"`
	CalculatedAt int64  `bun:"calculated_at"`
	AskedAt      int64  `bun:"asked_at"`
}

// dayRow is a row of action_history_days.
type dayRow struct {
	bun.BaseModel `bun:"table:action_history_days"`

	ActionID int64  `bun:"action_id,pk"`
	Day      int64  `bun:"day,pk"`
	LastRow  int64  `bun:"last_row"`
	Counts   []byte `bun:"counts"`
}

// load returns the counts of an action, empty ones for an action without. It
// reads all rows in one statement, so that they are consistent.
func (s *store) load(ctx context.Context, actionID int64) (*actionCounts, error) {
	t := &actionCounts{days: map[int64]*day{}}
	var rows []struct {
		countRow `bun:",extend"`

		Day     sql.NullInt64 `bun:"day"`
		DayRow  sql.NullInt64 `bun:"day_row"`
		Counted []byte        `bun:"counted"`
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("action_history AS h").
		ColumnExpr("h.*, d.day AS day, d.last_row AS day_row, d.counts AS counted").
		Join("LEFT JOIN action_history_days AS d ON d.action_id = h.action_id").Where("h.action_id = ?", actionID).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the history of action %d: %w", actionID, err)
	}
	if len(rows) == 0 || rows[0].Serial == 0 {
		return t, nil
	}
	var days []dayRow
	for i := range rows {
		if rows[i].Day.Valid {
			days = append(days, dayRow{ActionID: actionID, Day: rows[i].Day.Int64, LastRow: rows[i].DayRow.Int64, Counts: rows[i].Counted})
		}
	}
	return fill(t, &rows[0].countRow, days), nil
}

func fill(t *actionCounts, row *countRow, days []dayRow) *actionCounts {
	t.serial, t.fingerprint, t.erased = row.Serial, row.Fingerprint, row.Erased
	t.lastRow, t.undecided, t.requestedAt = row.LastRow, row.Undecided, time.UnixMicro(row.AskedAt).UTC()
	if row.CalculatedAt > 0 {
		t.calculatedAt = time.UnixMicro(row.CalculatedAt).UTC()
	}
	for i := range days {
		if counts, ok := decodeCounts(days[i].Counts); ok {
			t.days[days[i].Day] = &day{lastRow: days[i].LastRow, counts: counts}
		}
	}
	return t
}

// errConflict is the error of save after a concurrent count of the same
// action.
var errConflict = errors.New("concurrent count of the same action")

// save stores the changes of t. It stores nothing and fails with errConflict
// if the stored counts changed since t was loaded.
func (s *store) save(ctx context.Context, actionID, projectID int64, t *actionCounts, oldest int64) error {
	err := s.db.Tx(ctx, func(ctx context.Context) error {
		if err := s.saveCounts(ctx, actionID, projectID, t); err != nil {
			return err
		}
		return s.saveDays(ctx, actionID, t, oldest)
	})
	if err != nil {
		return err
	}
	t.serial++
	t.reset = false
	for _, d := range t.days {
		d.dirty = false
	}
	return nil
}

func (s *store) saveCounts(ctx context.Context, actionID, projectID int64, t *actionCounts) error {
	row := &countRow{
		ActionID: actionID, ProjectID: projectID, Serial: t.serial + 1, Fingerprint: t.fingerprint, Erased: t.erased,
		LastRow: t.lastRow, Undecided: t.undecided, AskedAt: t.requestedAt.UnixMicro(),
	}
	if !t.calculatedAt.IsZero() {
		row.CalculatedAt = t.calculatedAt.UnixMicro()
	}
	var res sql.Result
	var err error
	if t.serial == 0 {
		res, err = s.db.Write(ctx).NewInsert().Model(row).On("CONFLICT (action_id) DO NOTHING").Exec(ctx)
	} else {
		res, err = s.db.Write(ctx).NewUpdate().Model(row).WherePK().Where("serial = ?", t.serial).Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("store the history of action %d: %w", actionID, err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		return errConflict
	}
	return nil
}

func (s *store) saveDays(ctx context.Context, actionID int64, t *actionCounts, oldest int64) error {
	drop := s.db.Write(ctx).NewDelete().Model((*dayRow)(nil)).Where("action_id = ?", actionID)
	if !t.reset {
		drop = drop.Where("day < ?", oldest)
	}
	if _, err := drop.Exec(ctx); err != nil {
		return fmt.Errorf("delete days of action %d: %w", actionID, err)
	}
	var rows []dayRow
	for n, d := range t.days {
		if d.dirty && n >= oldest {
			rows = append(rows, dayRow{ActionID: actionID, Day: n, LastRow: d.lastRow, Counts: encodeCounts(&d.counts)})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := s.db.Write(ctx).NewInsert().Model(&rows).
		On("CONFLICT (action_id, day) DO UPDATE SET last_row = excluded.last_row, counts = excluded.counts").Exec(ctx)
	if err != nil {
		return fmt.Errorf("store days of action %d: %w", actionID, err)
	}
	return nil
}

// calculated returns the times of the last complete counts of actions.
func (s *store) calculated(ctx context.Context, actionIDs []int64) (map[int64]time.Time, error) {
	out := map[int64]time.Time{}
	if len(actionIDs) == 0 {
		return out, nil
	}
	var rows []countRow
	err := s.db.Read(ctx).NewSelect().Model(&rows).Column("action_id", "calculated_at").
		Where("action_id IN (?)", bun.List(actionIDs)).Where("calculated_at > 0").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("find when actions were counted: %w", err)
	}
	for _, r := range rows {
		out[r.ActionID] = time.UnixMicro(r.CalculatedAt).UTC()
	}
	return out, nil
}

// deleteUnrequested deletes the histories without a request since a time.
func (s *store) deleteUnrequested(ctx context.Context, before time.Time) error {
	return s.db.Tx(ctx, func(ctx context.Context) error {
		d := s.db.Write(ctx)
		old := d.NewSelect().Model((*countRow)(nil)).Column("action_id").Where("asked_at < ?", before.UnixMicro())
		_, err := d.NewDelete().Model((*dayRow)(nil)).Where("action_id IN (?)", old).Exec(ctx)
		if err == nil {
			_, err = d.NewDelete().Model((*countRow)(nil)).Where("asked_at < ?", before.UnixMicro()).Exec(ctx)
		}
		if err != nil {
			return fmt.Errorf("delete old histories: %w", err)
		}
		return nil
	})
}

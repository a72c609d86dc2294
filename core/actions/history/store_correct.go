package history

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/events"
)

// lockProject returns the counts of a project that are valid at a number of
// erasures, in the order of their actions, and locks them until the transaction
// ends.
func (s *store) lockProject(ctx context.Context, projectID, erased int64) ([]countRow, error) {
	var rows []countRow
	q := s.db.Write(ctx).NewSelect().Model(&rows).Where("project_id = ? AND erased = ?", projectID, erased).Order("action_id")
	if s.db.Postgres() {
		q = q.For("UPDATE")
	}
	if err := q.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the histories of project %d: %w", projectID, err)
	}
	return rows, nil
}

// subtract takes events from the days that hold them, and makes the counts valid
// at a number of erasures. The new serial number makes a run that has read the old
// counts start again.
func (s *store) subtract(ctx context.Context, row *countRow, fitting []*events.HistoryEvent, erased int64) error {
	byDay := map[int64][]*events.HistoryEvent{}
	for _, e := range fitting {
		n := dayOf(e.Event.Timestamp)
		byDay[n] = append(byDay[n], e)
	}
	if err := s.subtractDays(ctx, row, byDay); err != nil {
		return fmt.Errorf("correct the history of action %d: %w", row.ActionID, err)
	}
	_, err := s.db.Write(ctx).NewUpdate().Model(row).Set("erased = ?", erased).Set("serial = serial + 1").WherePK().Exec(ctx)
	if err != nil {
		return fmt.Errorf("correct the history of action %d: %w", row.ActionID, err)
	}
	return nil
}

func (s *store) subtractDays(ctx context.Context, row *countRow, byDay map[int64][]*events.HistoryEvent) error {
	for numbers := range slices.Chunk(slices.Sorted(maps.Keys(byDay)), 500) {
		var days []dayRow
		err := s.db.Write(ctx).NewSelect().Model(&days).Where("action_id = ? AND day IN (?)", row.ActionID, bun.List(numbers)).Scan(ctx)
		if err != nil {
			return err
		}
		for i := range days {
			if err := s.subtractDay(ctx, row, &days[i], byDay[days[i].Day]); err != nil {
				return err
			}
		}
	}
	return nil
}

// subtractDay takes the events from one day that were stored when it was counted.
func (s *store) subtractDay(ctx context.Context, row *countRow, d *dayRow, fitting []*events.HistoryEvent) error {
	counts, ok := decodeCounts(d.Counts)
	if !ok {
		return nil // load leaves the day out: it is counted again
	}
	for _, e := range fitting {
		if e.Row <= max(d.LastRow, row.LastRow) {
			n := &counts[quarterOf(e.Event.Timestamp)-d.Day*dayQuarters]
			*n = max(*n-1, 0)
		}
	}
	_, err := s.db.Write(ctx).NewUpdate().Model(d).Set("counts = ?", encodeCounts(&counts)).WherePK().Exec(ctx)
	return err
}

package clickhouse

import (
	"context"
	"fmt"
	"slices"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// eraseIDs is how many distinct ids one erasure has, and eraseChunk how many events one call
// of the hooks.
const (
	eraseIDs   = 500
	eraseChunk = 1000
)

// Erase implements events.Backend. One transaction corrects what was counted and records the
// erasure: from then on, queries leave the events out. Then ClickHouse deletes them. If
// that takes longer than eraseTimeout, or fails, Erase fails with Unavailable, and the loop of
// finishErasures goes on; a later call waits again.
func (s *Store) Erase(ctx context.Context, projectID int64, distinctIDs []string) (total int64, err error) {
	if err := s.prepare(ctx); err != nil {
		return 0, err
	}
	for ids := range slices.Chunk(distinctIDs, eraseIDs) {
		n, err := s.recordErasure(ctx, projectID, ids)
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, s.deleteErased(ctx, projectID, distinctIDs)
}

// recordErasure needs the events of the distinct ids in ClickHouse: it inserts the outbox
// first. No node inserts until its transaction ends.
func (s *Store) recordErasure(ctx context.Context, projectID int64, ids []string) (n int64, err error) {
	if err := s.Flush(ctx); err != nil {
		return 0, err
	}
	return n, s.db.Tx(ctx, func(ctx context.Context) (err error) {
		if err := s.lock(ctx); err != nil {
			return err
		}
		n, err = s.correctErased(ctx, projectID, ids)
		return err
	})
}

func (s *Store) correctErased(ctx context.Context, projectID int64, ids []string) (n int64, err error) {
	through, err := s.Last(ctx)
	if err != nil {
		return 0, err
	}
	without, err := s.withoutErased(ctx, projectID)
	if err != nil {
		return 0, err
	}
	where := fmt.Sprintf("project_id = %d AND distinct_id IN (%s) AND row <= %d", projectID, wire.QuoteAll(ids), through) + without
	list, err := s.selectRecords(ctx, where, "ORDER BY row")
	if err != nil {
		return 0, err
	}
	moved := make(map[int64]bool, len(list))
	for i := range list {
		moved[list[i].ID] = true
	}
	erased, err := s.eraseLeft(ctx, projectID, ids, moved)
	if err != nil {
		return 0, err
	}
	for i := range list {
		erased = append(erased, events.HistoryEvent{Row: list[i].ID, Event: list[i].ToEvent()})
	}
	for chunk := range slices.Chunk(erased, eraseChunk) {
		if err := s.shared.Correct(ctx, projectID, ids, chunk); err != nil {
			return 0, err
		}
	}
	if len(list) > 0 {
		err = s.erased.Add(ctx, projectID, ids, through)
	}
	return int64(len(erased)), err
}

// DeleteExpired implements events.Backend. ClickHouse deletes all events of x at once, because
// each deletion rewrites parts; the number may be larger than limit.
func (s *Store) DeleteExpired(ctx context.Context, x events.Expiry, _ int) (int, error) {
	n, err := s.CountExpired(ctx, x)
	if err == nil {
		err = s.expireLeft(ctx, x)
	}
	if err != nil || n == 0 {
		return 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, expireTimeout)
	defer cancel()
	// An unfinished deletion with an earlier bound is finished first: the next round deletes
	// the rest.
	return int(n), s.deleter.Delete(bounded, fmt.Sprintf("expiry of project %d, event %s", x.ProjectID, x.Event), expired(x))
}

package clickhouse

import (
	"context"
	"errors"
	"slices"

	"github.com/guidonhq/guidon/core/events/clickhouse/refusal"
)

// claimRows returns the batches of the next insertion. An insertion whose outcome is unknown is
// repeated with the same batches: it has the same deduplication token, so ClickHouse drops the
// first one if that arrives later. It saves, in a transaction of its own, the rows and that this
// process inserts them: after this, another process knows what to repeat.
func (s *Store) claimRows(st *state, batches []batch) ([]batch, error) {
	if s.uncertain && batches[0].FirstRow == st.FirstRow {
		if i := slices.IndexFunc(batches, func(b batch) bool { return b.LastRow == st.LastRow }); i >= 0 {
			batches = batches[:i+1]
		}
	}
	first, last := batches[0].FirstRow, batches[len(batches)-1].LastRow
	if st.Drainer == s.drainer && st.FirstRow == first && st.LastRow == last {
		return batches, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), knownTimeout)
	defer cancel()
	return batches, s.db.Tx(ctx, func(ctx context.Context) error {
		if st.Drainer != s.drainer {
			if err := s.saveDrainer(ctx); err != nil {
				return err
			}
		}
		return s.saveRows(ctx, first, last)
	})
}

// releaseRows makes the next insertion take other batches, too, if ClickHouse refuses the rows
// of this one for their data: it would refuse them again. It returns the error.
func (s *Store) releaseRows(refused error) error {
	if !refusal.AboutData(refused) {
		return refused
	}
	ctx, cancel := context.WithTimeout(context.Background(), knownTimeout)
	defer cancel()
	return errors.Join(refused, s.saveRows(ctx, 0, 0))
}

func (s *Store) saveRows(ctx context.Context, first, last int64) error {
	_, err := s.db.Write(ctx).NewUpdate().TableExpr("event_insertion").Set("first_row = ?, last_row = ?", first, last).Where("id = 1").Exec(ctx)
	return err
}

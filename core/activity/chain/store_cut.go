package chain

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/guidonhq/guidon/core/db"
)

// Cut removes the entries that are older than a time, up to the first one that is not,
// and returns how many. The last removed entry is the checkpoint that Verify begins
// with. Entries about the log itself are removed only together with others.
func (c *Chain) Cut(ctx context.Context, before time.Time) (removed int64, err error) {
	for {
		n, err := c.cutPage(ctx, before)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}

// cutPage is Cut for one transaction, which other changes wait for on SQLite.
func (c *Chain) cutPage(ctx context.Context, before time.Time) (removed int64, err error) {
	err = c.db.Tx(ctx, func(ctx context.Context) error {
		head, err := c.readHead(ctx, true)
		if err != nil {
			return err
		}
		last, err := c.lastBefore(ctx, head, before)
		if err != nil || last == nil {
			return err
		}
		result, err := c.db.Write(ctx).NewDelete().Model((*Row)(nil)).Where("sequence <= ?", last.Sequence).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete old activity: %w", err)
		}
		if removed, err = result.RowsAffected(); err != nil {
			return err
		}
		head.CutSequence, head.CutHash = last.Sequence, last.Hash
		if err := c.writeHead(ctx, &head); err != nil {
			return err
		}
		return c.note(ctx, cut, strconv.FormatInt(last.Sequence, 10), map[string]any{"sequence": last.Sequence, "hash": last.Hash, "entries": removed})
	})
	return removed, err
}

// cutEntries bounds the entries that one transaction removes.
const cutEntries = 10 * page

// lastBefore returns the last entry to remove, nil for none.
func (c *Chain) lastBefore(ctx context.Context, head headRow, before time.Time) (*Row, error) {
	end := head.Sequence
	var first []Row
	err := c.db.Read(ctx).NewSelect().Model(&first).Column("sequence").
		Where("sequence > ? AND created_at >= ?", head.CutSequence, db.At(before)).Order("sequence").Limit(1).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read activity: %w", err)
	}
	if len(first) > 0 {
		end = first[0].Sequence - 1
	}
	end = min(end, head.CutSequence+cutEntries)
	others, err := c.db.Read(ctx).NewSelect().Model((*Row)(nil)).Where("sequence <= ? AND scope <> ?", end, Scope).Limit(1).Exists(ctx)
	if err != nil || !others {
		return nil, err
	}
	var last []Row
	if err := c.db.Read(ctx).NewSelect().Model(&last).Where("sequence <= ?", end).Order("sequence DESC").Limit(1).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read activity: %w", err)
	}
	if len(last) == 0 {
		return nil, nil
	}
	return &last[0], nil
}

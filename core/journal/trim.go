package journal

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/checkpoint"
	"github.com/guidonhq/guidon/core/journal/clock"
	"github.com/guidonhq/guidon/core/journal/expiry"
	"github.com/guidonhq/guidon/core/journal/files"
	"github.com/guidonhq/guidon/core/journal/format"
)

const (
	trimBlocks = 256     // examined and removed in one step at most
	trimBytes  = 4 << 20 // removed in one step at most

	wholeRound = 10 // each so many rounds of retention read the file, also when nothing has expired

	vacuumPages  = 128                    // returned to the disk in one step
	vacuumLeast  = 64 << 20               // free space in the file below this is kept
	vacuumBudget = 200 * time.Millisecond // for one round
	vacuumSlow   = 20 * time.Millisecond  // a step that took longer ends the round
)

// oldestSQL lists the oldest blocks without their data.
const oldestSQL = `SELECT seq, n, at, pos FROM blocks ORDER BY seq LIMIT ?`

// nextStampSQL finds the first block behind a record whose stamp is not ahead of a
// time.
const nextStampSQL = `SELECT seq, at FROM blocks WHERE seq > ? AND at <= ? ORDER BY seq LIMIT 1`

// setRetention changes max_bytes and max_age while the journal is open.
func (j *store) setRetention(c *Config) { j.bounds.Set(c.MaxBytes, c.MaxAge) }

// Trim applies retention; see Journal.
func (j *store) Trim(ctx context.Context) (removed int64, err error) {
	j.trimming.Lock()
	defer j.trimming.Unlock()
	for {
		n, more, err := j.trimStep(ctx)
		removed += n
		if err != nil || !more {
			return removed, err
		}
	}
}

func (j *store) trimStep(ctx context.Context) (removed int64, more bool, err error) {
	span, cursors := j.index.now()
	if span.empty() || !j.cfg.DropUnread && cursors.done() < span.first {
		return 0, false, nil
	}
	blocks, err := j.oldestBlocks(ctx)
	if format.IsMalformed(err) { // the writer replaces the file
		return 0, false, j.submit(ctx, job{ownTx: true, apply: func(*group, *writeConn) error { return err }}, false)
	}
	if err != nil {
		return 0, false, err
	}
	now := j.clock.Trusted()
	before, bounded := j.bounds.Before(now)
	if !bounded {
		before = 0
	} else if err := j.replaceStampsAhead(ctx, blocks, now); err != nil {
		return 0, false, err
	}
	cut, more := expiry.Cut(blocks, span.endPos, j.bounds.MaxBytes(), before, trimBytes, trimBlocks)
	if cut == 0 {
		return 0, false, nil
	}
	err = j.submit(ctx, job{ownTx: true, apply: func(g *group, l *writeConn) error {
		if !j.cfg.DropUnread {
			cut = min(cut, g.all().done())
		}
		if removed, err = g.trimTo(cut, l); err != nil {
			return err
		}
		free, err := l.freePages()
		g.free = free * j.wal.PageBytes()
		return err
	}}, false)
	return removed, more && removed > 0 && err == nil, err
}

func (j *store) oldestBlocks(ctx context.Context) ([]expiry.Block, error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.life.RUnlock()
	rows, err := j.oldest.QueryContext(ctx, trimBlocks)
	if err != nil {
		return nil, errUnreadable.Because(damagedFile(err))
	}
	defer func() { _ = rows.Close() }()
	blocks := make([]expiry.Block, 0, trimBlocks)
	for rows.Next() {
		var seq, n int64
		var o expiry.Block
		if err := rows.Scan(&seq, &n, &o.At, &o.Pos); err != nil {
			return nil, errUnreadable.Because(err)
		}
		o.Last = uint64(seq + n - 1)
		blocks = append(blocks, o)
	}
	return blocks, damagedFile(rows.Err())
}

// replaceStampsAhead replaces the stamps of a time at which the clock was ahead by
// that of the next block with a right one: the records are at least as old.
func (j *store) replaceStampsAhead(ctx context.Context, blocks []expiry.Block, now int64) error {
	next := int64(0)
	for i := len(blocks) - 1; i >= 0; i-- {
		b := &blocks[i]
		switch {
		case !clock.IsAhead(b.At, now):
			next = b.At
		case i == len(blocks)-1:
			at, err := j.nextStamp(ctx, b, now)
			if err != nil {
				return err
			}
			b.At, next = at, at
		default:
			b.At = next
		}
	}
	return nil
}

// nextStamp returns the first stamp behind a block that is not ahead, and that of the
// block without one. It is read once for all steps of a round.
func (j *store) nextStamp(ctx context.Context, b *expiry.Block, now int64) (int64, error) {
	if j.right.Last > b.Last {
		return j.right.At, nil
	}
	if err := j.enter(); err != nil {
		return 0, err
	}
	defer j.life.RUnlock()
	var seq int64
	row := j.reads.QueryRowContext(ctx, nextStampSQL, int64(b.Last), now)
	switch err := row.Scan(&seq, &j.right.At); {
	case errors.Is(err, sql.ErrNoRows):
		return b.At, nil
	case err != nil:
		return 0, errUnreadable.Because(damagedFile(err))
	}
	j.right.Last = uint64(seq)
	return j.right.At, nil
}

// runRetention trims and shrinks the file at intervals until ctx ends.
func (j *store) runRetention(ctx context.Context) {
	tick := time.NewTicker(j.cfg.TrimInterval)
	defer tick.Stop()
	round := 0
	for failing := false; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !failing && round%wholeRound != 0 && !j.trimDue() {
			continue
		}
		_, err := j.Trim(ctx)
		if err == nil {
			err = j.shrink(ctx)
		}
		if errors.Is(err, errClosing) || errors.Is(err, context.Canceled) {
			continue
		}
		switch {
		case err != nil && !failing:
			j.log.Warn("journal retention failed; it is tried again", zap.Error(err))
		case err == nil && failing:
			j.log.Info("journal retention works again")
		}
		failing = err != nil
	}
}

// trimDue reports whether the oldest block has expired, from memory. A block whose
// stamp is ahead of the clock is due, too: Trim corrects it.
func (j *store) trimDue() bool {
	span, cursors := j.index.now()
	if span.empty() || !j.cfg.DropUnread && cursors.done() < span.first {
		return false
	}
	return j.bounds.Due(span.bytes(), span.firstAt, j.clock.Trusted())
}

// shrink returns free space in the file to the disk in small steps, after a large
// backlog is gone. In the steady state it does nothing: new records reuse the
// space of trimmed ones.
func (j *store) shrink(ctx context.Context) error {
	size, err := files.Size(j.path)
	if err != nil || j.index.reusable() < max(vacuumLeast, size/4) {
		return err
	}
	begun, step := time.Now(), time.Duration(0)
	for last := false; !last; {
		last = j.index.reusable() < vacuumLeast/2 || time.Since(begun) > vacuumBudget || step > vacuumSlow
		err := j.submit(ctx, job{ownTx: true, apply: func(g *group, l *writeConn) error {
			stepped := time.Now()
			if err := exec(l.vacuum); err != nil {
				return err
			}
			step = time.Since(stepped)
			if g.moved = vacuumPages * j.wal.PageBytes(); last {
				g.moved = checkpoint.LogBytes // the file becomes shorter when the log is folded
			}
			free, err := l.freePages()
			g.free = free * j.wal.PageBytes()
			return err
		}}, false)
		if err != nil {
			return err
		}
	}
	return nil
}

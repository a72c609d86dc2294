package journal

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

const (
	trimBlocks = 256     // looked at, and removed, in one step
	trimBytes  = 4 << 20 // removed in one step

	vacuumPages  = 32                     // given back to the disk in one step
	vacuumLeast  = 64 << 20               // less free space within the file is not worth it
	vacuumBudget = 200 * time.Millisecond // for one round
	vacuumSlow   = 20 * time.Millisecond  // a step that took longer ends the round
)

// oldestSQL lists the oldest blocks without their data.
const oldestSQL = `SELECT seq, n, at, pos FROM blocks ORDER BY seq LIMIT ?`

// An outline is a block without its data.
type outline struct {
	last uint64
	at   int64
	pos  int64
}

// expired returns the number of the last record that retention lets go: of the
// oldest blocks in order, those that are too much (with them more than
// maxBytes are kept) or too old (stamped before the time before). It stops
// after step bytes; more says that it did not see the end. end is where the
// newest block's bytes end. 0 for maxBytes or before is no bound.
func expired(blocks []outline, end, maxBytes, before, step int64) (cut uint64, more bool) {
	for _, b := range blocks {
		tooMuch := maxBytes > 0 && end-b.pos > maxBytes
		tooOld := before > 0 && b.at < before
		if !tooMuch && !tooOld {
			return cut, false
		}
		if b.pos-blocks[0].pos > step {
			return cut, true
		}
		cut = b.last
	}
	return cut, len(blocks) == trimBlocks
}

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
	span, cursors := j.ledger.now()
	if span.empty() || !j.cfg.DropUnread && cursors.done() < span.first {
		return 0, false, nil
	}
	blocks, err := j.oldestBlocks(ctx)
	if err != nil {
		return 0, false, err
	}
	before := int64(0)
	if j.cfg.MaxAge > 0 {
		before = j.clock.old() - j.cfg.MaxAge.Microseconds()
	}
	cut, more := expired(blocks, span.endPos, j.cfg.MaxBytes, before, trimBytes)
	if cut == 0 {
		return 0, false, nil
	}
	err = j.submit(ctx, job{alone: true, apply: func(g *group, l *link) error {
		if !j.cfg.DropUnread {
			cut = min(cut, g.all().done())
		}
		if removed, err = g.trimTo(cut, l); err != nil {
			return err
		}
		free, err := l.freePages()
		g.free = free * pageBytes
		return err
	}}, false)
	return removed, more && removed > 0 && err == nil, err
}

func (j *store) oldestBlocks(ctx context.Context) ([]outline, error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.life.RUnlock()
	rows, err := j.oldest.QueryContext(ctx, trimBlocks)
	if err != nil {
		return nil, errUnreadable.Because(err)
	}
	defer func() { _ = rows.Close() }()
	blocks := make([]outline, 0, trimBlocks)
	for rows.Next() {
		var seq, n int64
		var o outline
		if err := rows.Scan(&seq, &n, &o.at, &o.pos); err != nil {
			return nil, errUnreadable.Because(err)
		}
		o.last = uint64(seq + n - 1)
		blocks = append(blocks, o)
	}
	return blocks, rows.Err()
}

// tend trims, and gives space back, until ctx ends.
func (j *store) tend(ctx context.Context) {
	tick := time.NewTicker(j.cfg.TrimInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, err := j.Trim(ctx)
		if err == nil {
			err = j.shrink(ctx)
		}
		if err != nil && !errors.Is(err, errClosing) && !errors.Is(err, context.Canceled) {
			j.log.Warn("retention could not be applied", zap.Error(err))
		}
	}
}

// shrink gives the disk back what a backlog that is gone has left in the file,
// a little at a time. In the steady state it does nothing: what trimmed
// records leave is used again by new ones.
func (j *store) shrink(ctx context.Context) error {
	size, err := fileSize(j.path)
	if err != nil || j.ledger.reusable() < max(vacuumLeast, size/4) {
		return err
	}
	begun, step := time.Now(), time.Duration(0)
	for last := false; !last; {
		last = j.ledger.reusable() < vacuumLeast/2 || time.Since(begun) > vacuumBudget || step > vacuumSlow
		err := j.submit(ctx, job{alone: true, apply: func(g *group, l *link) error {
			stepped := time.Now()
			if err := exec(l.vacuum); err != nil {
				return err
			}
			step = time.Since(stepped)
			if g.moved = vacuumPages * pageBytes; last {
				g.moved = walBytes // the file becomes shorter when the log is folded
			}
			free, err := l.freePages()
			g.free = free * pageBytes
			return err
		}}, false)
		if err != nil {
			return err
		}
	}
	return nil
}

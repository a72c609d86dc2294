package pglog

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// segmentsKept is the number of segments in which the retention is divided. The other
// tables are for the newest segment and for records that a reader has not done.
const segmentsKept = 6

// maintain trims and publishes the lag of readers until the log closes.
func (l *Log) maintain() {
	for retry.Sleep(l.ctx, l.cfg.TrimInterval) {
		if _, err := l.Trim(l.ctx); err != nil && l.ctx.Err() == nil {
			l.log.Warn("log trim failed", zap.Error(err))
		}
		l.publishLag(l.ctx)
	}
}

// Trim deletes the records that all readers have done and the retention does not keep, and
// returns how many. It does nothing while another node trims.
func (l *Log) Trim(ctx context.Context) (removed int64, err error) {
	err = l.store.asTrimmer(ctx, func(t trimmer) error {
		if err := l.refresh(ctx); err != nil {
			return err
		}
		segments, err := l.store.segments(ctx)
		if err != nil {
			return err
		}
		return l.rotate(ctx, t, segments)
	})
	if err != nil {
		return 0, l.unreadable(ctx, err)
	}
	err = l.store.asTrimmer(ctx, func(t trimmer) (err error) {
		if err := l.refresh(ctx); err != nil { // another node may have trimmed meanwhile
			return err
		}
		removed, err = l.trim(ctx, t)
		return err
	})
	if err != nil {
		return 0, l.unreadable(ctx, err)
	}
	if err := l.refresh(ctx); err != nil {
		return removed, err
	}
	if err := l.empty(ctx); err != nil {
		return removed, l.unreadable(ctx, err)
	}
	return removed, nil
}

// rotate begins a new segment if the newest is due and a table is free.
func (l *Log) rotate(ctx context.Context, t trimmer, segments []segment) error {
	newest := segments[len(segments)-1]
	slot, found := freeSlot(segments)
	if !found || l.isEmpty(newest) {
		return nil
	}
	keep := l.retention.Load()
	due := keep.maxAge > 0 && time.Since(newest.began) >= keep.maxAge/segmentsKept
	if !due && keep.maxBytes > 0 {
		bytes, err := t.size(ctx, newest.slot)
		if err != nil {
			return err
		}
		due = bytes >= keep.maxBytes/segmentsKept
	}
	if !due {
		return nil
	}
	l.log.Debug("log segment begun", zap.Int64("generation", newest.generation+1))
	return t.rotate(ctx, slot)
}

func freeSlot(segments []segment) (slot int32, found bool) {
	var used [slots]bool
	for _, g := range segments {
		used[g.slot] = true
	}
	for i := range int32(slots) {
		if !used[i] {
			return i, true
		}
	}
	return 0, false
}

// isEmpty reports whether the newest segment has no records.
func (l *Log) isEmpty(newest segment) bool {
	for i, p := range l.partitions {
		if _, end := p.Bounds(); end > uint64(newest.bases[i]) {
			return false
		}
	}
	return true
}

// trim advances the oldest kept record of each partition and returns how many records that
// removed.
func (l *Log) trim(ctx context.Context, t trimmer) (removed int64, err error) {
	segments, err := l.store.segments(ctx)
	if err != nil {
		return 0, err
	}
	keep, err := l.firstKept(ctx, t, segments)
	if err != nil {
		return 0, err
	}
	all, err := l.cursors.List(ctx, l.id)
	if err != nil {
		return 0, err
	}
	trimmed := make([]int64, len(l.partitions))
	for i, p := range l.partitions {
		before, _ := p.Bounds()
		trimmed[i] = max(int64(before), min(segments[keep].bases[i], leastDone(all, i)))
		removed += trimmed[i] - int64(before)
		l.metrics.Trimmed(i, trimmed[i]-int64(before))
	}
	if removed > 0 {
		if err := t.setTrimmed(ctx, trimmed); err != nil {
			return 0, err
		}
	}
	return removed, nil
}

// empty empties the oldest segments as long as all their records are deleted. A table that
// another session uses, such as a backup, is left for the next round.
func (l *Log) empty(ctx context.Context) error {
	for done := false; !done; {
		err := l.store.asTrimmer(ctx, func(t trimmer) error {
			segments, err := l.store.segments(ctx)
			if err != nil {
				return err
			}
			done = len(segments) < 2 || !l.isDone(segments[0], segments[1])
			if done {
				return nil
			}
			l.log.Debug("log segment emptied", zap.Int64("generation", segments[0].generation))
			return t.empty(ctx, segments[0])
		})
		if isLockTimeout(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// firstKept returns the first segment that the retention keeps.
func (l *Log) firstKept(ctx context.Context, t trimmer, segments []segment) (first int, err error) {
	keep, bytes := l.retention.Load(), int64(0)
	for first = len(segments) - 1; first > 0; first-- {
		older := segments[first-1]
		size, err := t.size(ctx, older.slot)
		if err != nil {
			return 0, err
		}
		bytes += size
		aged := keep.maxAge > 0 && time.Since(segments[first].began) > keep.maxAge
		large := keep.maxBytes > 0 && bytes > keep.maxBytes
		if aged || large {
			break
		}
	}
	return first, nil
}

// leastDone returns the number through which all readers of a partition have done its
// records; 0 without a reader.
func leastDone(all []cursors.Cursor, partition int) int64 {
	least, found := int64(0), false
	for _, c := range all {
		if c.Partition == partition && (!found || int64(c.Position.Seq) < least) {
			least, found = int64(c.Position.Seq), true
		}
	}
	return least
}

// isDone reports whether all records of a segment, before the next one, are deleted.
func (l *Log) isDone(g, next segment) bool {
	for i, p := range l.partitions {
		through, _ := p.Bounds()
		if next.bases[i] > max(int64(through), g.bases[i]) {
			return false
		}
	}
	return true
}

// publishLag publishes the lag of the readers of the partitions that this node reads.
func (l *Log) publishLag(ctx context.Context) {
	all, err := l.cursors.List(ctx, l.id)
	if err != nil {
		return
	}
	for i, p := range l.partitions {
		if !p.isRead() {
			l.metrics.Forget(i)
			continue
		}
		if s, err := p.stats(ctx, all); err == nil {
			l.metrics.Publish(i, s)
		}
	}
}

// Stats implements eventlog.Partition. Bytes are estimates from the mean size of the
// records that this node has read.
func (o owned) Stats(ctx context.Context) (journal.Stats, error) {
	if err := o.check(ctx); err != nil {
		return journal.Stats{}, err
	}
	if err := o.p.l.refreshRecent(ctx); err != nil {
		return journal.Stats{ID: o.p.id(), Broken: err}, err
	}
	all, err := o.p.l.cursors.Recent(ctx, o.p.l.id)
	if err != nil {
		return journal.Stats{ID: o.p.id(), Broken: o.p.l.health.Current()}, err
	}
	return o.p.stats(ctx, all)
}

func (p *partition) stats(ctx context.Context, all []cursors.Cursor) (journal.Stats, error) {
	p.mu.Lock()
	start, end, mean := p.trimmed, p.end, 0.0
	if p.counted > 0 {
		mean = float64(p.weighed) / float64(p.counted)
	}
	p.mu.Unlock()
	s := journal.Stats{
		ID: p.id(), First: start + 1, Last: end, Records: int64(end - start), Bytes: int64(float64(end-start) * mean),
		Broken: p.l.health.Current(),
	}
	var err error
	if s.OldestAt, err = p.appendedAt(ctx, start); err != nil {
		return s, err
	}
	for _, c := range all {
		if c.Partition != p.number {
			continue
		}
		after := p.l.cursors.Behind(p.l.id, c)
		lag := int64(end - min(end, max(after, start)))
		r := journal.ReaderStats{Name: c.Reader, Position: c.Position, Lag: lag, Bytes: int64(float64(lag) * mean)}
		if lag > 0 {
			if r.OldestAt, err = p.appendedAt(ctx, after); err != nil {
				return s, err
			}
		}
		s.Readers = append(s.Readers, r)
	}
	return s, nil
}

// appendedAt returns when the record after a position was appended; zero if there is none.
func (p *partition) appendedAt(ctx context.Context, after uint64) (time.Time, error) {
	p.mu.Lock()
	after = max(after, p.trimmed)
	end := p.end
	for _, c := range p.chunks {
		if c.Covers(after) && len(c.From(after)) > 0 {
			p.mu.Unlock()
			return c.From(after)[0].At, nil
		}
	}
	p.mu.Unlock()
	if after >= end {
		return time.Time{}, nil
	}
	g := p.l.segmentOf(p.number, after)
	at, err := p.l.store.storedAt(ctx, g.slot, p.number, int64(after))
	if err != nil {
		return at, p.l.unreadable(ctx, err)
	}
	return at.UTC(), nil
}

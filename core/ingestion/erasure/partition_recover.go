package erasure

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// Recover carries out the erasures that the partition holds behind a record and that
// the database does not know; false when ctx ends first. It reads the records behind the
// position of the partition only.
func (p *Partition) Recover(ctx context.Context, after uint64) bool {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: pollInterval}
	ok := retry.Until(ctx, backoff, func() error { return p.recover(ctx, after) },
		func(err error) { p.log.Warn("waiting to recover erasures from the log", zap.Error(err)) })
	if ok {
		p.once.Do(func() { close(p.recovered) })
	}
	return ok
}

// WaitRecovered returns when Recover has succeeded; false when ctx ends first.
func (p *Partition) WaitRecovered(ctx context.Context) bool {
	select {
	case <-p.recovered:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *Partition) recover(ctx context.Context, after uint64) error {
	if err := p.load(ctx); err != nil {
		return err
	}
	stats, err := p.records.Stats(ctx)
	if err != nil {
		return err
	}
	if p.id == "" { // later, readers run
		p.id = stats.ID
	}
	s, err := p.startScan(ctx, stats.First, after)
	if err != nil {
		return err
	}
	for end := false; !end; {
		if end, err = p.recoverNext(ctx, s, stats.Last); err != nil {
			return err
		}
	}
	p.scan = s
	return nil
}

// recoverNext reads records until the position is worth to be written, and carries out
// the erasures that they hold and that the database does not know. It reports whether the
// last record was read.
func (p *Partition) recoverNext(ctx context.Context, s *scan, last uint64) (end bool, err error) {
	var found erasureList
	for records, bytes := 0, 0; records < p.saveRecords && bytes < saveBytes; {
		if end = s.next >= last; end {
			break
		}
		c, err := p.readChunk(ctx, p.records, p.id, s.next, scanRecords, scanBytes)
		if err != nil {
			return false, err
		}
		if end = c.isEnd(); end {
			break
		}
		found.add(c.found...)
		s.add(&c)
		records, bytes = records+c.records, bytes+c.bytes
	}
	if err := p.recoverUnknown(ctx, found.all); err != nil {
		return false, err
	}
	if s.isDue(p.saveRecords) {
		if err := p.savePosition(ctx, s); err != nil { // the next owner reads more
			p.log.Warn("position of the scan for erasures not written", zap.String("partition", p.id), zap.Error(err))
		}
	}
	return end, nil
}

// recoverUnknown carries out the erasures that the database does not know.
func (p *Partition) recoverUnknown(ctx context.Context, found []Erasure) error {
	known, err := p.recoveredAlready(ctx, found)
	if err != nil {
		return err
	}
	for i := range found {
		if known[i] {
			continue
		}
		if err := p.recoverErasure(ctx, &found[i]); err != nil {
			return err
		}
	}
	return nil
}

// recoveredAlready reports for each erasure whether nothing of it has to be recovered: its marks for
// the partition are in the database, and it is done or was requested from this database,
// so that the job of erasures does the rest while the partition is processed.
func (p *Partition) recoveredAlready(ctx context.Context, found []Erasure) ([]bool, error) {
	known := make([]bool, len(found))
	if len(found) == 0 {
		return known, nil
	}
	lowest := found[0].Seq
	for i := range found {
		lowest = min(lowest, found[i].Seq)
	}
	marked := memory{key: p.memory.key}
	if err := p.store.marks(ctx, p.id, lowest, marked.set); err != nil {
		return nil, err
	}
	for i := range found {
		if !marked.covers(&found[i]) {
			continue
		}
		settled, err := p.store.isSettled(ctx, found[i].ID)
		if err != nil {
			return nil, err
		}
		known[i] = settled
	}
	return known, nil
}

// knowsAll reports whether nothing of the erasures has to be recovered.
func (p *Partition) knowsAll(ctx context.Context, found []Erasure) (bool, error) {
	known, err := p.recoveredAlready(ctx, found)
	return !slices.Contains(known, false), err
}

// recoverErasure carries out an erasure that the database does not know. It waits for the
// erasure that is carried out. Of one that was requested from this database it writes only
// the marks of the partition: the job of erasures, which has appended the record, answers
// the request when the marks of all partitions are written and the data is deleted.
func (p *Partition) recoverErasure(ctx context.Context, e *Erasure) error {
	if requested, err := p.store.isRequested(ctx, e.ID); err != nil || requested {
		if err == nil {
			err = p.markRequested(ctx, e)
		}
		return err
	}
	unlock, err := p.lockProcessing(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.store.insert(ctx, e); err != nil {
		return err
	}
	if err := p.store.remember(ctx, p.memory.key, []*Erasure{e}, []place{{p.id, e.Seq}}, false); err != nil {
		return err
	}
	if done, err := p.store.isDone(ctx, e.ID); err != nil || done {
		return err
	}
	if err := p.remove(ctx, e); err != nil {
		return err
	}
	p.log.Info("erasure recovered from the log", zap.String("erasure", e.ID), zap.Uint64("seq", e.Seq))
	return nil
}

// markRequested writes the marks of an erasure that was requested from this database. One
// that is done and has its marks has another record before this one, which was appended
// late, by a node that lost its lease meanwhile: events before it were accepted after the
// answer, and stay.
func (p *Partition) markRequested(ctx context.Context, e *Erasure) error {
	done, err := p.store.isDone(ctx, e.ID)
	if err != nil {
		return err
	}
	if done {
		if marked, err := p.store.isMarked(ctx, p.memory.key, e, p.id); err != nil || marked {
			return err
		}
	}
	return p.store.mark(ctx, p.memory.key, e, place{p.id, e.Seq})
}

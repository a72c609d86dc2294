package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// Stats implements eventlog.Partition. Bytes are estimates from the mean size of the
// records that this node has fetched.
func (o owned) Stats(ctx context.Context) (journal.Stats, error) {
	if err := o.check(ctx); err != nil {
		return journal.Stats{}, err
	}
	if err := o.p.l.recentOffsets(ctx); err != nil {
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
	start, end := p.start, p.end
	p.mu.Unlock()
	s := journal.Stats{
		ID: p.id(), First: start + 1, Last: end, Records: int64(end - start),
		Broken: p.l.health.Current(),
	}
	var err error
	if s.OldestAt, err = p.appendedAt(ctx, start); err != nil {
		return s, err
	}
	for _, c := range all {
		if c.Partition != int(p.number) {
			continue
		}
		after := p.l.cursors.Behind(p.l.id, c)
		lag := int64(end - min(end, max(after, start)))
		r := journal.ReaderStats{Name: c.Reader, Position: c.Position, Lag: lag}
		if lag > 0 {
			if r.OldestAt, err = p.appendedAt(ctx, after); err != nil {
				return s, err
			}
		}
		s.Readers = append(s.Readers, r)
	}
	mean := p.l.meanBytes(p) // after appendedAt, which may have fetched the first record
	s.Bytes = int64(float64(s.Records) * mean)
	for i := range s.Readers {
		s.Readers[i].Bytes = int64(float64(s.Readers[i].Lag) * mean)
	}
	return s, nil
}

// meanBytes is the mean size of the records of a partition that this node has fetched, or
// of all partitions if there are none of this one.
func (l *Log) meanBytes(p *partition) float64 {
	p.mu.Lock()
	mean := p.meanBytes()
	p.mu.Unlock()
	if mean > 0 {
		return mean
	}
	var counted, weighed int64
	for _, other := range l.partitions {
		other.mu.Lock()
		counted, weighed = counted+other.counted, weighed+other.weighed
		other.mu.Unlock()
	}
	return float64(weighed) / float64(max(counted, 1))
}

// meanBytes is the mean size of the records fetched. p.mu is held.
func (p *partition) meanBytes() float64 {
	if p.counted == 0 {
		return 0
	}
	return float64(p.weighed) / float64(p.counted)
}

// partitionsCheck is the pause between two looks at the number of partitions, idleTail
// how long a partition is fetched that is not read.
const (
	partitionsCheck = time.Minute
	idleTail        = time.Minute
)

// maintain trims, watches the lag of readers and closes tails until the log closes.
func (l *Log) maintain() {
	checked := time.Now()
	for retry.Sleep(l.ctx, l.cfg.TrimInterval) {
		l.closeIdleTails(idleTail)
		l.checkClaim(l.ctx)
		if _, err := l.Trim(l.ctx); err != nil && l.ctx.Err() == nil {
			l.log.Warn("log trim failed", zap.Error(err))
		}
		if time.Since(checked) > partitionsCheck {
			checked = time.Now()
			l.checkPartitions(l.ctx)
		}
	}
}

func (l *Log) closeIdleTails(idle time.Duration) {
	for _, p := range l.partitions {
		p.mu.Lock()
		unused := p.open && p.waiters == 0 && time.Since(p.used) > idle
		p.mu.Unlock()
		if unused {
			p.closeTail()
		}
	}
}

// checkPartitions logs when the topic has got more partitions: this process goes on with
// those it has, and the next start is refused.
func (l *Log) checkPartitions(ctx context.Context) {
	m, err := l.admin.Metadata(ctx, l.target.Topic)
	if n := len(m.Topics[l.target.Topic].Partitions); err == nil && n > l.topic.partitions {
		l.log.Error("log topic has more partitions than at the start; the next start will be refused",
			zap.String("topic", l.target.Topic), zap.Int("partitions", n), zap.Int("used", l.topic.partitions))
	}
}

// Trim deletes the records of the partitions that this node reads which all readers have
// done and the retention does not keep, and returns how many. It also refuses or accepts
// appends by the distance of unread records from the retention of the topic.
func (l *Log) Trim(ctx context.Context) (removed int64, err error) {
	if l.taken.Load() {
		return 0, nil
	}
	if err := l.refreshOffsets(ctx); err != nil {
		return 0, err
	}
	all, err := l.cursors.List(ctx, l.id)
	if err != nil {
		return 0, err
	}
	l.watchLag(ctx, all)
	aged := map[int32]int64{}
	if maxAge := l.retention.Load().maxAge; maxAge > 0 {
		if aged, err = l.listOffsets(ctx, time.Now().Add(-maxAge).UnixMilli()); err != nil {
			return 0, err
		}
	}
	targets := kadm.Offsets{}
	for _, p := range l.partitions {
		if until, n := p.trimTarget(all, aged); n > 0 {
			targets.Add(kadm.Offset{Topic: l.target.Topic, Partition: p.number, At: int64(until), LeaderEpoch: -1})
			removed += n
		}
	}
	if removed == 0 {
		return 0, nil
	}
	done, err := l.admin.DeleteRecords(ctx, targets)
	if err == nil {
		err = done.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("delete records: %w", err)
	}
	for _, r := range done.Sorted() {
		p := l.partitions[r.Partition]
		p.mu.Lock()
		l.metrics.Trimmed(int(r.Partition), max(0, r.LowWatermark-int64(p.start)))
		p.observe(r.LowWatermark, 0)
		p.mu.Unlock()
	}
	return removed, nil
}

// trimTarget returns the number of the newest record to delete, and how many that are.
// Without a reader there is none.
func (p *partition) trimTarget(all []cursors.Cursor, aged map[int32]int64) (until uint64, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open {
		return 0, 0
	}
	least, found := p.end, false
	for _, c := range all {
		if c.Partition == int(p.number) {
			least, found = min(least, c.Position.Seq), true
		}
	}
	if !found {
		return 0, 0
	}
	if offset, ok := aged[p.number]; ok {
		if offset < 0 { // all records are older
			offset = int64(p.end)
		}
		until = uint64(offset)
	}
	if mean, maxBytes := p.meanBytes(), p.l.retention.Load().maxBytes; maxBytes > 0 && mean > 0 {
		kept := uint64(float64(maxBytes) / float64(len(p.l.partitions)) / mean)
		until = max(until, p.end-min(p.end, kept))
	}
	until = min(until, least)
	if until <= p.start {
		return 0, 0
	}
	return until, int64(until - p.start)
}

// watchLag publishes the lag of the readers of the partitions that this node reads. With a
// finite retention it also decides whether appends are refused, for every partition.
func (l *Log) watchLag(ctx context.Context, all []cursors.Cursor) {
	for _, p := range l.partitions {
		p.mu.Lock()
		read := p.open
		p.mu.Unlock()
		if !read {
			l.metrics.Forget(int(p.number))
			if l.topic.retention == 0 {
				continue
			}
		}
		s, err := p.stats(ctx, all)
		if err != nil {
			l.log.Warn("log statistics failed", zap.Int32("partition", p.number), zap.Error(err))
			continue
		}
		if read {
			l.metrics.Publish(int(p.number), s)
		}
		p.guard(s)
	}
}

// guard refuses appends while the oldest unread record is within a tenth of the retention
// of the topic from its end.
func (p *partition) guard(s journal.Stats) {
	if p.l.topic.retention == 0 {
		return
	}
	near, reader := false, ""
	for _, r := range s.Readers {
		if r.Lag > 0 && !r.OldestAt.IsZero() && time.Since(r.OldestAt) > p.l.topic.retention/10*9 {
			near, reader = true, r.Name
		}
	}
	if p.expiring.Swap(near) == near {
		return
	}
	if near {
		p.l.log.Error("log appends refused: the retention of the topic is near unread records",
			zap.Int32("partition", p.number), zap.String("reader", reader), zap.Duration("retention", p.l.topic.retention))
		return
	}
	p.l.log.Info("log appends accepted again", zap.Int32("partition", p.number))
}

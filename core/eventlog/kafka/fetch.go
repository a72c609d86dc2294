package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog/chunks"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// seqOf returns the number of the record at an offset.
func seqOf(offset int64) uint64 { return uint64(offset) + 1 }

func recordOf(r *kgo.Record) journal.Record {
	return journal.Record{Seq: seqOf(r.Offset), At: r.Timestamp.UTC(), Data: r.Value}
}

// openTail makes the fetch loop fetch the partition from its end on.
func (p *partition) openTail(ctx context.Context) error {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	if open {
		return nil
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	p.mu.Lock()
	open = p.open
	p.mu.Unlock()
	if open {
		return nil
	}
	if err := p.l.refreshOffsets(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.open, p.used = true, time.Now()
	p.tail.Reset(p.end)
	end := p.end
	p.mu.Unlock()
	p.l.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{p.l.target.Topic: {p.number: kgo.NewOffset().At(int64(end))}})
	return nil
}

// closeTail ends the fetching of the partition and frees its memory.
func (p *partition) closeTail() {
	p.opening.Lock()
	defer p.opening.Unlock()
	p.l.client.RemoveConsumePartitions(map[string][]int32{p.l.target.Topic: {p.number}})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open, p.ahead, p.oldest = false, nil, nil
	p.tail.Reset(p.end)
	p.broadcast() // those who wait open it again
}

// fetchPause is the pause between two fetches of several partitions. Else each append would
// wake a fetch of its own. The linger of the workers is longer.
const fetchPause = 10 * time.Millisecond

// fetchLoop moves the newest records of all open partitions into their tails.
func (l *Log) fetchLoop() {
	for {
		fetches := l.client.PollFetches(l.ctx)
		if fetches.IsClientClosed() || l.ctx.Err() != nil {
			return
		}
		open := l.openTails()
		limit := l.cfg.TailBytes / max(1, open)
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			p := l.partitions[f.Partition]
			if f.Err != nil {
				p.fetchFailed(f.Err)
				return
			}
			p.fetched(&f.FetchPartition, limit)
		})
		if open > 1 {
			retry.Sleep(l.ctx, fetchPause)
		}
	}
}

func (l *Log) openTails() (n int) {
	for _, p := range l.partitions {
		p.mu.Lock()
		if p.open {
			n++
		}
		p.mu.Unlock()
	}
	return n
}

// fetched adds records to the tail, if they follow it.
func (p *partition) fetched(f *kgo.FetchPartition, limit int) {
	records := make([]journal.Record, len(f.Records))
	for i, r := range f.Records {
		records[i] = recordOf(r)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observe(f.LogStartOffset, f.HighWatermark)
	p.count(records)
	if !p.open {
		return
	}
	last := p.tail.Last
	p.tail.Append(records)
	p.tail.Evict(limit)
	p.end = max(p.end, p.tail.Last)
	if p.tail.Last > last {
		p.broadcast()
	}
}

// observe takes over the bounds of the partition that a broker reports. p.mu is held.
func (p *partition) observe(start, end int64) {
	p.start, p.end = max(p.start, uint64(max(0, start))), max(p.end, uint64(max(0, end)))
}

// appended records that this process has stored a record, so that Stats has it at once.
func (p *partition) appended(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = max(p.end, uint64(max(0, offset))+1)
}

// count adds records to the mean size. p.mu is held.
func (p *partition) count(records []journal.Record) {
	for _, r := range records {
		p.counted++
		p.weighed += int64(len(r.Data))
	}
}

// fetchFailed handles an error of the fetch loop that the client does not retry: the
// tail begins again at the end.
func (p *partition) fetchFailed(err error) {
	if errors.Is(err, context.Canceled) || errClosed(err) {
		return
	}
	p.l.metrics.FetchFailed(int(p.number))
	p.l.log.Error("log fetch failed", zap.Int32("partition", p.number), zap.Error(err))
	p.closeTail()
	retry.Sleep(p.l.ctx, 100*time.Millisecond)
}

// Limits of one direct fetch.
const (
	fetchAttempts = 8
	leastFetch    = 256 << 10
	mostFetch     = 4 << 20
)

// fetchDirect fetches the records after a position into memory. It fails with Unavailable
// when the leader of the partition does not answer after some attempts.
func (p *partition) fetchDirect(ctx context.Context, after uint64, maxBytes int) error {
	p.l.metrics.FetchedDirect(int(p.number))
	backoff := retry.Backoff{Min: 50 * time.Millisecond, Max: time.Second}
	var err error
	for attempt := range fetchAttempts {
		if err = p.fetchOnce(ctx, after, min(max(maxBytes, leastFetch), mostFetch), attempt > 0); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errClosed(err) {
			return logstate.ErrClosing
		}
		if errors.Is(err, kerr.OffsetOutOfRange) { // deleted meanwhile: Read looks again
			return p.l.refreshOffsets(ctx)
		}
		p.l.metrics.FetchFailed(int(p.number))
		if !backoff.Sleep(ctx) {
			return ctx.Err()
		}
	}
	p.l.log.Error("log read failed", zap.Int32("partition", p.number), zap.Uint64("after", after), zap.Error(err))
	return logstate.ErrUnreadable.Because(err)
}

// fetchOnce sends one request for the records after a position to the leader.
func (p *partition) fetchOnce(ctx context.Context, after uint64, maxBytes int, refresh bool) error {
	ctx, cancel := context.WithTimeout(ctx, p.l.cfg.AppendTimeout)
	defer cancel()
	leader, id, err := p.leader(ctx, refresh)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes, req.MaxBytes = 1, int32(maxBytes)
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p.number, int64(after), int32(maxBytes)
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID, rt.Partitions = p.l.target.Topic, id, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	answer, err := p.l.direct.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return errors.New("the broker has answered a fetch without the partition")
	}
	return p.keep(after, &resp.Topics[0].Partitions[0])
}

// keep keeps the records of an answer as a chunk.
func (p *partition) keep(after uint64, rp *kmsg.FetchResponseTopicPartition) error {
	o := kgo.ProcessFetchPartitionOpts{Offset: int64(after), Topic: p.l.target.Topic, Partition: p.number}
	f, next := kgo.ProcessFetchPartition(o, rp, p.l.decompressor, nil)
	if f.Err != nil {
		return f.Err
	}
	c := &chunks.Chunk{After: after, Last: max(after, uint64(next))}
	for _, r := range f.Records {
		record := recordOf(r)
		c.Records = append(c.Records, record)
		c.Bytes += len(record.Data)
		c.Last = max(c.Last, record.Seq)
	}
	if c.Last == after && rp.HighWatermark > int64(after) {
		return fmt.Errorf("the broker has no records at the offset %d, before its end %d", after, rp.HighWatermark)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observe(rp.LogStartOffset, rp.HighWatermark)
	p.count(c.Records)
	if c.Last > after {
		p.ahead = chunks.Add(p.ahead, c, aheadChunks, aheadBytes)
	}
	return nil
}

// leader returns the broker that leads the partition, and the id of the topic.
func (p *partition) leader(ctx context.Context, refresh bool) (broker int32, id [16]byte, err error) {
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = kmsg.StringPtr(p.l.target.Topic)
	req.Topics = append(req.Topics, rt)
	limit := 10 * time.Second
	if refresh {
		limit = 0 // as short as the client allows
	}
	resp, err := p.l.direct.RequestCachedMetadata(ctx, req, limit)
	if err != nil {
		return 0, id, err
	}
	for _, t := range resp.Topics {
		for _, tp := range t.Partitions {
			if tp.Partition != p.number {
				continue
			}
			if tp.Leader < 0 {
				return 0, id, kerr.LeaderNotAvailable
			}
			return tp.Leader, t.TopicID, nil
		}
	}
	return 0, id, kerr.UnknownTopicOrPartition
}

package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/guidonhq/guidon/core/eventlog/logstate"
	"github.com/guidonhq/guidon/core/retry"
)

// Times of ListOffsets that stand for the ends of a partition.
const (
	listEnd   = -1
	listStart = -2
)

// listOffsets returns for each partition the offset of the first record that was appended
// at a time or later, in milliseconds since 1970, or -1 if there is none. It also takes
// listStart and listEnd.
func (l *Log) listOffsets(ctx context.Context, millis int64) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.AppendTimeout)
	defer cancel()
	req := kmsg.NewPtrListOffsetsRequest()
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = l.target.Topic
	for i := range l.topic.partitions {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = int32(i), millis
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	answer, err := l.direct.Request(ctx, req)
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, t := range answer.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, err
			}
			out[p.Partition] = p.Offset
		}
	}
	if len(out) < l.topic.partitions {
		return nil, errors.New("the brokers do not know all partitions of the topic")
	}
	return out, nil
}

// refreshOffsets reads the first and the newest record of all partitions. A failure is
// Unavailable, or the error of an ended ctx.
func (l *Log) refreshOffsets(ctx context.Context) error {
	starts, err := l.listOffsets(ctx, listStart)
	var ends map[int32]int64
	if err == nil {
		ends, err = l.listOffsets(ctx, listEnd)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case errClosed(err):
		return logstate.ErrClosing
	default:
		return logstate.ErrUnreadable.Because(err)
	}
	for _, p := range l.partitions {
		p.mu.Lock()
		p.observe(starts[p.number], ends[p.number])
		p.mu.Unlock()
	}
	l.offsets.Store(time.Now().UnixNano())
	return nil
}

// firstOffsets is refreshOffsets until it succeeds, ctx ends, or the brokers refuse it for
// a reason that stays, such as missing rights: a broker that has just gone away leads
// partitions until the others have noticed.
func (l *Log) firstOffsets(ctx context.Context) error {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for {
		err := l.refreshOffsets(ctx)
		if err == nil || errors.Is(err, logstate.ErrClosing) || isRefusedForGood(err) || !backoff.Sleep(ctx) {
			return err
		}
	}
}

// isRefusedForGood reports whether err is an answer of a broker that the same request gets again.
func isRefusedForGood(err error) bool {
	_, answered := errors.AsType[*kerr.Error](err)
	return answered && !kerr.IsRetriable(err)
}

// offsetsAge is how old the offsets may be that Stats describes. The tails of partitions
// that are read are newer.
const offsetsAge = 250 * time.Millisecond

// recentOffsets is refreshOffsets unless that was called lately, so that the statistics of
// many partitions take one round of requests.
func (l *Log) recentOffsets(ctx context.Context) error {
	l.refreshing.Lock()
	defer l.refreshing.Unlock()
	if time.Since(time.Unix(0, l.offsets.Load())) < offsetsAge {
		return nil
	}
	return l.refreshOffsets(ctx)
}

// appendedAt returns when the record after a position was appended; zero if there is none.
func (p *partition) appendedAt(ctx context.Context, after uint64) (time.Time, error) {
	p.mu.Lock()
	after = max(after, p.start)
	at, known := p.oldest[after]
	end := p.end
	if !known {
		if c := p.covering(after); c != nil && len(c.From(after)) > 0 {
			at, known = c.From(after)[0].At, true
		}
	}
	p.mu.Unlock()
	if known || after >= end {
		return at, nil
	}
	if err := p.fetchDirect(ctx, after, 1); err != nil {
		return at, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.covering(after); c != nil && len(c.From(after)) > 0 {
		at = c.From(after)[0].At
		if p.oldest == nil || len(p.oldest) > 100 {
			p.oldest = map[uint64]time.Time{}
		}
		p.oldest[after] = at
	}
	return at, nil
}

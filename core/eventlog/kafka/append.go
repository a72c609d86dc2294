package kafka

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
	"github.com/guidonhq/guidon/core/fault"
)

// Append implements eventlog.Log. An ended ctx refuses the append before it begins;
// afterwards Append waits for the brokers, at most twice the AppendTimeout, because the
// data belongs to the caller again when it returns.
func (l *Log) Append(ctx context.Context, parts []eventlog.Part) error {
	if err := ctx.Err(); err != nil {
		return l.metrics.Refused(err)
	}
	if len(parts) == 0 {
		return nil
	}
	begun := time.Now()
	if err := l.attachment.Check(begun); err != nil {
		return l.metrics.Refused(err)
	}
	bytes, err := l.admit(parts)
	if err != nil {
		return l.metrics.Refused(err)
	}
	defer l.queue.Leave(bytes, len(parts))
	outcome := l.produce(parts)
	l.recordOutcome(outcome)
	if outcome != nil {
		return l.metrics.Refused(appendFault(outcome))
	}
	l.metrics.Appended(begun, bytes)
	return nil
}

// admit takes the place of the parts in the queue, or returns why they are refused.
func (l *Log) admit(parts []eventlog.Part) (bytes int, err error) {
	if l.taken.Load() {
		return 0, errTaken
	}
	most := int(l.topic.batchBytes(l.cfg)) - batchHeader
	for _, p := range parts {
		switch {
		case p.Partition < 0 || p.Partition >= len(l.partitions):
			return 0, logstate.ErrNoPartition
		case len(p.Data) > l.cfg.MaxRecordBytes || len(p.Data) > most:
			return 0, logstate.ErrRecordTooLarge
		case l.partitions[p.Partition].expiring.Load():
			return 0, logstate.ErrFull
		}
		bytes += len(p.Data)
	}
	return bytes, l.queue.Enter(bytes, len(parts))
}

// batchHeader is above what the format adds to one record: 61 bytes for the batch and up
// to 26 for the record.
const batchHeader = 128

// produce sends the parts and returns the first error after all have been answered.
func (l *Log) produce(parts []eventlog.Part) error {
	a := newPendingAppend(l.target.Topic, parts)
	l.groups.add(a)
	return a.wait()
}

// recordOutcome keeps the result of an append for Stats, and logs when it changes.
func (l *Log) recordOutcome(err error) {
	if err != nil && (errClosed(err) || fault.Is(appendFault(err), fault.TooLarge)) {
		return
	}
	if !l.health.Set(err) {
		return
	}
	if err != nil {
		l.metrics.SetBroken(true)
		l.log.Error("log append failed", zap.String("topic", l.target.Topic), zap.Error(err))
		return
	}
	l.metrics.SetBroken(false)
	l.log.Info("log appends succeed again", zap.String("topic", l.target.Topic))
}

// isRefusal reports whether a broker refuses this client for good.
func isRefusal(err error) bool {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

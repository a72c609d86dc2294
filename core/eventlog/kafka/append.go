package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
)

// Append implements eventlog.Log. An ended ctx refuses the append before it begins;
// afterwards Append waits for the brokers, at most twice the AppendTimeout, because the
// data belongs to the caller again when it returns.
func (l *Log) Append(ctx context.Context, parts []eventlog.Part) error {
	if err := ctx.Err(); err != nil {
		return l.metrics.refused(err)
	}
	if len(parts) == 0 {
		return nil
	}
	bytes, err := l.admit(parts)
	if err != nil {
		return l.metrics.refused(err)
	}
	begun := time.Now()
	defer l.queue.leave(bytes, len(parts))
	outcome := l.produce(parts)
	l.recordOutcome(outcome)
	if outcome != nil {
		return l.metrics.refused(appendFault(outcome))
	}
	l.metrics.appended(begun, bytes)
	return nil
}

// admit takes the place of the parts in the queue, or returns why they are refused.
func (l *Log) admit(parts []eventlog.Part) (bytes int, err error) {
	most := int(l.topic.batchBytes(l.cfg)) - batchHeader
	for _, p := range parts {
		switch {
		case p.Partition < 0 || p.Partition >= len(l.partitions):
			return 0, errNoPartition
		case len(p.Data) > l.cfg.MaxRecordBytes || len(p.Data) > most:
			return 0, errRecordTooLarge
		case l.partitions[p.Partition].expiring.Load():
			return 0, errFull
		}
		bytes += len(p.Data)
	}
	return bytes, l.queue.enter(bytes, len(parts))
}

// batchHeader is above what the format adds to one record: 61 bytes for the batch and up
// to 26 for the record.
const batchHeader = 128

// produce sends the parts and returns the first error after all have been answered.
func (l *Log) produce(parts []eventlog.Part) error {
	var pending sync.WaitGroup
	pending.Add(len(parts))
	records := make([]kgo.Record, len(parts))
	errs := make([]error, len(parts))
	for i, p := range parts {
		records[i] = kgo.Record{Topic: l.target.Topic, Partition: int32(p.Partition), Value: p.Data}
		l.client.TryProduce(context.Background(), &records[i], func(r *kgo.Record, err error) {
			if errs[i] = err; err == nil {
				l.partitions[r.Partition].appended(r.Offset)
			}
			pending.Done()
		})
	}
	pending.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// recordOutcome keeps the result of an append for Stats, and logs when it changes.
func (l *Log) recordOutcome(err error) {
	if err != nil && (errClosed(err) || fault.Is(appendFault(err), fault.TooLarge)) {
		return
	}
	if !l.health.set(err) {
		return
	}
	if err != nil {
		l.metrics.setBroken(true)
		l.log.Error("log append failed", zap.String("topic", l.target.Topic), zap.Error(err))
		return
	}
	l.metrics.setBroken(false)
	l.log.Info("log appends succeed again", zap.String("topic", l.target.Topic))
}

// queue bounds the appends that wait for the brokers.
type queue struct {
	maxBytes, maxRecords int64

	mu             sync.Mutex
	bytes, records int64
	closed         bool
	idle           chan struct{} // closed when the queue is closed and empty
}

func (q *queue) enter(bytes, records int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosing
	case q.bytes > 0 && q.bytes+int64(bytes) > q.maxBytes, q.records+int64(records) > q.maxRecords && q.records > 0:
		return errSaturated
	}
	q.bytes += int64(bytes)
	q.records += int64(records)
	return nil
}

func (q *queue) leave(bytes, records int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= int64(bytes)
	q.records -= int64(records)
	if q.closed && q.records == 0 {
		close(q.idle)
	}
}

// close refuses new appends.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.idle = true, make(chan struct{})
	if q.records == 0 {
		close(q.idle)
	}
}

// wait returns when the appends that began before close have ended.
func (q *queue) wait() { <-q.idle }

// isRefusal reports whether a broker refuses this client for good.
func isRefusal(err error) bool {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

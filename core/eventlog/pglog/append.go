package pglog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
	"github.com/guidonhq/guidon/core/retry"
)

const (
	// rowBytes is the data of a row before compression, unless one record is larger.
	rowBytes = 16 << 10
	// groupBytes is the data of a commit, unless one request is larger.
	groupBytes = 4 << 20
	// publishPause is the least pause between two notifications of other nodes.
	publishPause = 20 * time.Millisecond
)

// request is an append that waits for the writer.
type request struct {
	parts []eventlog.Part
	bytes int
	until time.Time  // it is not begun afterwards
	done  chan error // has room for the outcome
}

// Append implements eventlog.Log. The parts are stored in one transaction: all or none,
// but after an error the outcome may be unknown. An ended ctx refuses the append before it
// begins; afterwards Append waits, at most twice the AppendTimeout.
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
	r := &request{parts: parts, until: begun.Add(l.cfg.AppendTimeout), done: make(chan error, 1)}
	if err := l.admit(r); err != nil {
		return l.metrics.Refused(err)
	}
	defer l.queue.Leave(r.bytes, len(parts))
	l.pending <- r
	if err := <-r.done; err != nil {
		return l.metrics.Refused(err)
	}
	l.metrics.Appended(begun, r.bytes)
	return nil
}

// admit takes the place of a request in the queue, or returns why it is refused.
func (l *Log) admit(r *request) error {
	for _, p := range r.parts {
		switch {
		case p.Partition < 0 || p.Partition >= len(l.partitions):
			return logstate.ErrNoPartition
		case len(p.Data) > l.cfg.MaxRecordBytes:
			return logstate.ErrRecordTooLarge
		}
		r.bytes += len(p.Data)
	}
	return l.queue.Enter(r.bytes, len(r.parts))
}

// write stores the requests until the log is closed and none is left.
func (l *Log) write(e *encoder) {
	for {
		var group []*request
		select {
		case r := <-l.pending:
			group = l.collect(r)
		case <-l.ctx.Done():
			return // the queue is closed and empty
		}
		group = slices.DeleteFunc(group, func(r *request) bool {
			late := time.Now().After(r.until)
			if late {
				r.done <- logstate.ErrUnavailable
			}
			return late
		})
		if len(group) == 0 {
			continue
		}
		err := l.commit(e, group)
		for _, r := range group {
			r.done <- err
		}
	}
}

// collect returns the requests that wait, first included, up to groupBytes.
func (l *Log) collect(first *request) []*request {
	group, bytes := []*request{first}, first.bytes
	for bytes < groupBytes {
		select {
		case r := <-l.pending:
			group, bytes = append(group, r), bytes+r.bytes
		default:
			return group
		}
	}
	return group
}

// commit stores a group and returns the fault for its requests.
func (l *Log) commit(e *encoder, group []*request) error {
	parts, counts, contents, err := l.rows(e, group)
	if err != nil {
		return logstate.ErrUnavailable.Because(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.AppendTimeout)
	defer cancel()
	ends, err := l.store.append(ctx, parts, counts, contents)
	l.recordOutcome(err)
	if err != nil {
		return logstate.ErrUnavailable.Because(err)
	}
	l.contacted()
	for p, last := range ends {
		l.partitions[p].advance(uint64(last))
	}
	select {
	case l.appended <- struct{}{}:
	default:
	}
	return nil
}

// rows divides the records of a group into rows, by partition and in their order.
func (l *Log) rows(e *encoder, group []*request) (parts, counts []int32, contents [][]byte, err error) {
	byPart := make([][][]byte, len(l.partitions))
	for _, r := range group {
		for _, p := range r.parts {
			byPart[p.Partition] = append(byPart[p.Partition], p.Data)
		}
	}
	for p, records := range byPart {
		for len(records) > 0 {
			n, bytes := 1, len(records[0])
			for n < len(records) && bytes+len(records[n]) <= rowBytes {
				bytes += len(records[n])
				n++
			}
			content, err := e.row(records[:n])
			if err != nil {
				return nil, nil, nil, fmt.Errorf("compress: %w", err)
			}
			parts, counts, contents = append(parts, int32(p)), append(counts, int32(n)), append(contents, content)
			records = records[n:]
		}
	}
	return parts, counts, contents, nil
}

// recordOutcome keeps the result of a commit for Stats, and logs when it changes.
func (l *Log) recordOutcome(err error) {
	if !l.health.Set(err) {
		return
	}
	l.metrics.SetBroken(err != nil)
	if err != nil {
		l.log.Error("log append failed", zap.Error(err))
		return
	}
	l.log.Info("log appends succeed again")
}

// topic is the one of notifications of appends.
const topic = "log"

// publish tells other nodes of appends until the log closes.
func (l *Log) publish() {
	for {
		select {
		case <-l.appended:
			l.hub.Publish(topic, l.sender)
		case <-l.ctx.Done():
			return
		}
		if !retry.Sleep(l.ctx, publishPause) {
			return
		}
	}
}

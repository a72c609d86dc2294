package tail

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/stream"
)

// endTime bounds the last message of a stream.
const endTime = time.Second

// viewer is one open stream.
type viewer struct {
	filter *filter
	resume int64                       // the row that the client has seen, -1 for none
	check  func(context.Context) error // of the credential
	stream *stream.Stream
	ended  chan struct{} // closed at the end of the connection
	filled chan struct{} // holds one; receives when there is something to write

	// Of the goroutine of the topic.
	tokens float64 // events that may be sent now
	refill time.Time

	mu       sync.Mutex
	queue    [][]byte
	bytes    int
	skipped  [reasons]int64
	position int64 // everything up to it is in the queue, sent or counted
}

// offer queues the events of list that match, at most MaxRate per second, and counts the
// others. position is the row up to which the topic has read.
func (v *viewer) offer(ctx context.Context, list []message, position int64, view View) (sent, skipped int) {
	matching := v.matching(ctx, list)
	return v.enqueue(matching, v.take(len(matching)), position, view)
}

// resumeWith queues what a client that reconnects has missed, which no rate bounds.
func (v *viewer) resumeWith(ctx context.Context, list []message, position int64, view View) (sent, skipped int) {
	matching := v.matching(ctx, list)
	return v.enqueue(matching, len(matching), position, view)
}

// matching returns the events of list that match. It counts those that the filter is too
// costly for, and after the end of ctx the others.
func (v *viewer) matching(ctx context.Context, list []message) []*message {
	v.filter.begin(time.Now())
	out, refused := make([]*message, 0, len(list)), 0
	for i := range list {
		if ctx.Err() != nil {
			refused += len(list) - i
			break
		}
		if v.filter.matches(list[i].record) {
			out = append(out, &list[i])
		} else if v.filter.tooCostly() {
			refused++
		}
	}
	if refused > 0 {
		v.skip(costly, int64(refused), 0)
	}
	return out
}

// enqueue queues n of the matching events, evenly.
func (v *viewer) enqueue(matching []*message, n int, position int64, view View) (sent, skipped int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range n {
		m := matching[i*len(matching)/n]
		if b, err := m.frame(view); err != nil || !v.push(b) {
			v.skipped[slow]++
			skipped++
		}
	}
	v.skipped[rate] += int64(len(matching) - n)
	v.position = max(v.position, position)
	if len(matching) > 0 {
		v.wake()
	}
	return n - skipped, skipped + len(matching) - n
}

// take returns how many of n events may be sent now.
func (v *viewer) take(n int) int {
	now := time.Now()
	v.tokens = min(MaxRate, v.tokens+now.Sub(v.refill).Seconds()*MaxRate)
	v.refill = now
	n = min(n, int(v.tokens))
	v.tokens -= float64(n)
	return n
}

// push adds to the queue; false if it is full. The caller holds the lock.
func (v *viewer) push(b []byte) bool {
	if len(v.queue) >= queueEvents || len(v.queue) > 0 && v.bytes+len(b) > queueBytes {
		return false
	}
	v.queue = append(v.queue, b)
	v.bytes += len(b)
	return true
}

// say queues a message of the stream itself.
func (v *viewer) say(b []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, b)
	v.bytes += len(b)
	v.wake()
}

// reach notes that everything up to a row is in the queue, sent or counted.
func (v *viewer) reach(position int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.position = max(v.position, position)
}

// skip counts events that are not offered.
func (v *viewer) skip(r reason, n, position int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.skipped[r] += n
	v.position = max(v.position, position)
	v.wake()
}

func (v *viewer) hasEnded() bool {
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

func (v *viewer) wake() {
	select {
	case v.filled <- struct{}{}:
	default:
	}
}

// next returns the bytes of the next write, of about chunkBytes. What was skipped is said
// when the queue is empty.
func (v *viewer) next(buf []byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for n < len(v.queue) && (n == 0 || len(buf)+len(v.queue[n]) <= chunkBytes) {
		buf = append(buf, v.queue[n]...)
		v.bytes -= len(v.queue[n])
		n++
	}
	rest := copy(v.queue, v.queue[n:])
	clear(v.queue[rest:])
	v.queue = v.queue[:rest]
	if rest == 0 {
		buf = appendSkipped(buf, v.position, &v.skipped)
		v.skipped = [reasons]int64{}
	}
	return buf
}

// run writes to the stream until it ends, the credential is not valid any more, or ctx
// ends.
func (v *viewer) run(ctx context.Context, t Times) {
	defer v.stream.Close()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(endTime, v.stream.Close) })()
	beat, check := time.NewTicker(t.Heartbeat), time.NewTicker(t.Check)
	defer beat.Stop()
	defer check.Stop()
	buf := make([]byte, 0, chunkBytes)
	for {
		idle := false
		select {
		case <-ctx.Done():
			v.stream.Send(appendEnd(nil, nil), endTime)
			return
		case <-v.ended:
			return
		case <-check.C:
			if !v.recheck(ctx) {
				return
			}
			continue
		case <-beat.C:
			idle = true
		case <-v.filled:
		}
		for buf = v.next(buf[:0]); len(buf) > 0; buf = v.next(buf[:0]) {
			idle = false
			select { // a queue that is never empty must not put the check off
			case <-check.C:
				if !v.recheck(ctx) {
					return
				}
			default:
			}
			if !v.stream.Send(buf, t.Write) {
				return
			}
			if ctx.Err() != nil {
				v.stream.Send(appendEnd(nil, nil), endTime)
				return
			}
		}
		if idle && !v.stream.Send(v.heartbeat(), t.Write) {
			return
		}
		if cap(buf) > 4*chunkBytes {
			buf = make([]byte, 0, chunkBytes)
		}
	}
}

// heartbeat returns the bytes that keep an idle connection open. While the queue is empty
// they carry the position as an id without an event, so that a client that reconnects gets
// no reset for the rows of other projects.
func (v *viewer) heartbeat() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.position == 0 || len(v.queue) > 0 || v.skipped != [reasons]int64{} {
		return heartbeat
	}
	return append(strconv.AppendInt([]byte(":\nid: "), v.position, 10), "\n\n"...)
}

// recheck ends the stream with the reason and returns false if the credential is not valid
// any more.
func (v *viewer) recheck(ctx context.Context) bool {
	err := v.checkCredential(ctx)
	if err != nil {
		v.stream.Send(appendEnd(nil, err), endTime)
	}
	return err == nil
}

// checkCredential fails if the credential is not valid any more. A failed check ends no
// stream.
func (v *viewer) checkCredential(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := v.check(ctx)
	if fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}

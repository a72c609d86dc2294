package journal

import (
	"context"
	"sync"
	"time"
)

// lazyDelay bounds how long a cursor commit waits to share the fsync of an append.
const lazyDelay = 2 * time.Millisecond

// A request is an append (job is nil) or a job in the queue of the writer.
type request struct {
	data []byte
	job  *job
	lazy bool // the job may wait lazyDelay for an append

	seq  uint64
	err  error
	done chan struct{} // holds one; receives when seq and err are set
}

var requests = sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}

// release returns r to the pool. Only its owner may call it, after done.
func (r *request) release() {
	r.data, r.job, r.lazy, r.seq, r.err = nil, nil, false, 0, nil
	requests.Put(r)
}

func (r *request) answer(seq uint64, err error) {
	r.seq, r.err = seq, err
	r.done <- struct{}{}
}

// queue is the bounded queue of the writer. Many goroutines enqueue requests, one
// takes all that fit into a group.
type queue struct {
	maxRecords, maxBytes int

	mu      sync.Mutex
	waiting []*request
	bytes   int
	urgent  int // requests that are not lazy
	closed  bool
	wake    chan struct{} // holds one
}

func newQueue(maxRecords, maxBytes int) *queue {
	return &queue{maxRecords: maxRecords, maxBytes: maxBytes, wake: make(chan struct{}, 1)}
}

// enqueue adds r to the end of the line. Jobs always fit: there are few of them.
func (q *queue) enqueue(r *request) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return errClosing
	}
	if r.job == nil && len(q.waiting) > 0 && (len(q.waiting) >= q.maxRecords || q.bytes+len(r.data) > q.maxBytes) {
		q.mu.Unlock()
		return errSaturated
	}
	q.waiting = append(q.waiting, r)
	q.bytes += len(r.data)
	if !r.lazy {
		q.urgent++
	}
	call := len(q.waiting) == 1 || !r.lazy && q.urgent == 1
	q.mu.Unlock()
	if call {
		q.signal()
	}
	return nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// withdraw removes r from the queue. It returns false if the writer has it.
func (q *queue) withdraw(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, w := range q.waiting {
		if w == r {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			q.subtract(r)
			return true
		}
	}
	return false
}

func (q *queue) subtract(r *request) {
	q.bytes -= len(r.data)
	if !r.lazy {
		q.urgent--
	}
}

// wait blocks until a request is due: an urgent one, or a lazy one after
// lazyDelay. It returns false when the queue is closed and empty.
func (q *queue) wait() bool {
	var patience <-chan time.Time
	for {
		q.mu.Lock()
		n, urgent, closed := len(q.waiting), q.urgent, q.closed
		q.mu.Unlock()
		switch {
		case urgent > 0 || n > 0 && closed:
			return true
		case closed:
			return false
		case n == 0:
			<-q.wake
		default:
			if patience == nil {
				patience = time.After(lazyDelay)
			}
			select {
			case <-q.wake:
			case <-patience:
				return true
			}
		}
	}
}

// takeGroup moves the front of the line to into: at least one request, then as many
// as keep the group within its limits.
func (q *queue) takeGroup(into []*request, maxRecords, maxBytes int) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for _, r := range q.waiting {
		if n > 0 && (n >= maxRecords || bytes+len(r.data) > maxBytes) {
			break
		}
		n++
		bytes += len(r.data)
	}
	into = append(into, q.waiting[:n]...)
	if n == len(q.waiting) {
		clear(q.waiting)
		q.waiting, q.bytes, q.urgent = q.waiting[:0], 0, 0
		return into
	}
	for _, r := range q.waiting[:n] {
		q.subtract(r)
	}
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	return into
}

// close refuses new requests; queued ones are still taken.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

// do queues r and waits for its result. When ctx ends while r is queued, r is
// withdrawn and not executed.
func (q *queue) do(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := q.enqueue(r); err != nil {
		return err
	}
	if ctx.Done() == nil {
		<-r.done
		return r.err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		if q.withdraw(r) {
			return ctx.Err()
		}
		<-r.done
		return r.err
	}
}

package logstate

import "sync"

// Queue bounds the appends that wait to be stored.
type Queue struct {
	MaxBytes, MaxRecords int64

	mu             sync.Mutex
	bytes, records int64
	closed         bool
	idle           chan struct{} // closed when the queue is closed and empty
}

// Enter takes the place of an append, or returns why it is refused.
func (q *Queue) Enter(bytes, records int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosing
	case q.bytes > 0 && q.bytes+int64(bytes) > q.MaxBytes, q.records+int64(records) > q.MaxRecords && q.records > 0:
		return ErrSaturated
	}
	q.bytes += int64(bytes)
	q.records += int64(records)
	return nil
}

// Leave gives the place of an append back.
func (q *Queue) Leave(bytes, records int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= int64(bytes)
	q.records -= int64(records)
	if q.closed && q.records == 0 {
		close(q.idle)
	}
}

// Close refuses new appends.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.idle = true, make(chan struct{})
	if q.records == 0 {
		close(q.idle)
	}
}

// Wait returns when the appends that began before Close have ended.
func (q *Queue) Wait() { <-q.idle }

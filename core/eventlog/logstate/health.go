package logstate

import (
	"sync"
	"time"
)

// Health is whether appends are stored now.
type Health struct {
	mu     sync.Mutex
	err    error
	failed time.Time // of err
}

// brokenFor is how long a failed append is reported if no other append follows.
const brokenFor = 30 * time.Second

// Set records the result of an append, and reports whether it differs from the last.
func (h *Health) Set(err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed = (h.err == nil) != (err == nil)
	h.err, h.failed = err, time.Now()
	return changed
}

// Current returns the error of the last append, if it failed lately.
func (h *Health) Current() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil && time.Since(h.failed) > brokenFor {
		return nil
	}
	return h.err
}

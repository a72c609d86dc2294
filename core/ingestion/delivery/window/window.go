// Package window limits the batches in flight to a sink.
package window

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// codeLate is the code of a call that timed out.
const codeLate = "deadline_exceeded"

// Window limits the batches in flight by additive increase and multiplicative
// decrease: it grows by one for each window of batches that arrived, and shrinks
// by three tenths when the sink is throttled or late. The zero value has no limit yet. Its
// methods are safe for concurrent use.
type Window struct {
	mu     sync.Mutex
	size   float64
	limit  float64
	shrunk time.Time
}

// Within returns the window, from 1 to limit. It starts at the limit.
func (w *Window) Within(limit int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit = float64(limit); w.size == 0 {
		w.size = w.limit
	}
	w.size = min(max(w.size, 1), w.limit)
	return int(w.size)
}

// Current returns the window, at least 1.
func (w *Window) Current() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(int(w.size), 1)
}

// OnResult adjusts the window to the outcome of a call. Calls that were in flight
// when the window shrank do not shrink it again.
func (w *Window) OnResult(began time.Time, failure *sdk.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.size == 0:
	case failure == nil:
		w.size = min(w.size+1/w.size, w.limit)
	case failure.Class != sdk.ClassThrottled && failure.Code != codeLate:
	case began.After(w.shrunk):
		w.size, w.shrunk = w.size*0.7, time.Now()
	}
}

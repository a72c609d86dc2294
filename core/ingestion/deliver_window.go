package ingestion

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// codeLate is the code of a call that was not answered in time.
const codeLate = "deadline_exceeded"

// window is how many batches may be on the way at once: one more for every
// window of batches that arrived, three tenths less when a sink is overrun.
type window struct {
	mu     sync.Mutex
	size   float64
	most   float64
	shrunk time.Time
}

// within returns the window, from one to most. It starts out as large as it may
// be.
func (w *window) within(most int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.most = float64(most); w.size == 0 {
		w.size = w.most
	}
	w.size = min(max(w.size, 1), w.most)
	return int(w.size)
}

// now returns the window as it is.
func (w *window) now() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(int(w.size), 1)
}

// learn takes note of how a call ended that began then. Those that were on the
// way when the window shrank do not shrink it again.
func (w *window) learn(began time.Time, failure *sdk.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.size == 0:
	case failure == nil:
		w.size = min(w.size+1/w.size, w.most)
	case failure.Class != sdk.ClassThrottled && failure.Code != codeLate:
	case began.After(w.shrunk):
		w.size, w.shrunk = w.size*0.7, time.Now()
	}
}

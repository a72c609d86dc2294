package budget

import (
	"runtime"
	"time"
)

// maxSlotWait bounds the wait of a large request for a slot.
const maxSlotWait = 5 * time.Second

// newSlots returns the slots of the processors that large requests may occupy:
// half of them, at least one.
func newSlots() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) }

// StartProcessing marks the start of work that needs a processor and no network:
// decompression, parsing. Until EndProcessing a request that holds more than
// SmallBytes occupies a slot. The slots leave half of the processors to small
// requests: without them a few dozen large bodies delay each small request by
// their time slices. It waits for a slot, and fails with Unavailable after five
// seconds. Small requests never wait.
func (a *Account) StartProcessing() error {
	if a == nil || a.budget == nil {
		return nil
	}
	a.processing = true
	return a.occupy(a.held)
}

// EndProcessing returns the slot. Further calls do nothing.
func (a *Account) EndProcessing() {
	if a == nil {
		return
	}
	a.processing = false
	if a.slot {
		a.slot = false
		<-a.budget.slots
	}
}

// occupy takes a slot for an account that is about to hold bytes.
func (a *Account) occupy(bytes int64) error {
	if bytes <= SmallBytes {
		return nil
	}
	a.EndSmall()
	if !a.processing || a.slot {
		return nil
	}
	select {
	case a.budget.slots <- struct{}{}:
		a.slot = true
		return nil
	default:
	}
	timer := time.NewTimer(maxSlotWait)
	defer timer.Stop()
	select {
	case a.budget.slots <- struct{}{}:
		a.slot = true
		return nil
	case <-timer.C:
		a.budget.rejected.Add(1)
		return errSaturated
	}
}

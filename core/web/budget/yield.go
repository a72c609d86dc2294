package budget

import "time"

// YieldBytes is the number of bytes after which the work on a request calls
// Yield: about a tenth of a millisecond.
const YieldBytes = 64 << 10

// Bounds of the pauses of Yield.
const (
	shortPause = time.Millisecond
	maxPaused  = time.Second
)

// BeginSmall counts the request among the small ones until EndSmall, or until it
// holds more than SmallBytes. Large requests pause meanwhile: see Yield.
func (a *Account) BeginSmall() {
	if a.budget != nil && !a.small && a.held <= SmallBytes {
		a.small = true
		a.budget.small.Add(1)
	}
}

// EndSmall ends what BeginSmall began. Further calls do nothing.
func (a *Account) EndSmall() {
	if a != nil && a.small {
		a.small = false
		a.budget.small.Add(-1)
	}
}

// Yield interrupts the work on a request that holds more than SmallBytes, so
// that small requests need not wait for the end of its time slice, which is 10 ms
// long. While small requests are being answered it pauses, for one second in
// total; otherwise it returns at once, after the runtime has looked for requests
// that have arrived.
func (a *Account) Yield() {
	if a == nil || a.budget == nil || a.held <= SmallBytes {
		return
	}
	if a.budget.small.Load() == 0 || a.paused >= maxPaused {
		// Gosched would not look at the network while another goroutine can run.
		time.Sleep(time.Nanosecond)
		return
	}
	start := time.Now()
	time.Sleep(shortPause)
	a.paused += time.Since(start)
}

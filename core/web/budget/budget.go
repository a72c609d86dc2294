// Package budget bounds the memory of all requests that a server is receiving.
//
// A body of a few kilobytes can inflate to megabytes, and a list of empty
// objects needs many times its size as values. Limits of a single request do
// not help: many requests at once exceed the memory of the machine. So each
// request has an Account, and takes bytes from the Budget of the server before
// it allocates them: the body while it is received, the output while it is
// decompressed, the values before they are parsed. When the budget is used up,
// a request fails with Unavailable, which clients repeat.
//
// Requests that hold less than SmallBytes may use the whole budget, larger ones
// only three quarters of it: slow or hostile uploads cannot keep small requests
// out. A request always succeeds while it is the only one, so that a small
// budget slows a server down and never blocks it.
//
// Large requests share half of the processors while they are decompressed and
// parsed, and they pause while small requests are being answered; see
// Account.StartProcessing and Account.Yield.
//
// A Buffer grows in steps that its account has paid for. The memory of large
// buffers is reused, within what requests leave of the budget.
//
// After a peak the freed memory returns to the system within seconds.
//
// The budget counts the memory of requests. It does not count connections, the
// work behind an accepted request, or answers.
package budget

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/fault"
)

// SmallBytes is the largest amount that a request may hold to use the whole
// budget.
const SmallBytes = 1 << 20

// CodeSaturated is the code of the error of a budget that is used up.
const CodeSaturated = "server_saturated"

var errSaturated = fault.New(fault.Unavailable, CodeSaturated,
	"The server is receiving more than its memory for requests can hold. Try again later.").After(time.Second)

// Budget is a number of bytes that accounts share. A nil Budget is unlimited.
// It is safe for concurrent use.
type Budget struct {
	limit, large int64
	used         atomic.Int64
	rejected     atomic.Int64
	reclaims     atomic.Bool   // a call of reclaim is due
	slots        chan struct{} // one element for each large request that is processed
	small        atomic.Int64  // requests between BeginSmall and EndSmall
	blocks       blocks
}

// New returns a budget of limit bytes, nil if limit is not positive.
func New(limit int) *Budget {
	if limit <= 0 {
		return nil
	}
	return &Budget{limit: int64(limit), large: int64(limit) / 4 * 3, slots: newSlots()}
}

// Used returns the bytes that are taken now.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// Register adds the metrics of the budget to reg.
func (b *Budget) Register(reg prometheus.Registerer) {
	if b == nil || reg == nil {
		return
	}
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "guidon_http_memory_bytes", Help: "Memory that requests in flight have taken from http.memory_bytes.",
		}, func() float64 { return float64(b.used.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "guidon_http_memory_rejected_total", Help: "Requests that were rejected because http.memory_bytes was used up.",
		}, func() float64 { return float64(b.rejected.Load()) }))
}

// take adds n bytes for an account that holds held already.
func (b *Budget) take(held, n int64) bool {
	limit := b.limit
	if held+n > SmallBytes {
		limit = b.large
	}
	used := b.used.Add(n)
	if used > limit && used > held+n {
		b.used.Add(-n)
		b.rejected.Add(1)
		return false
	}
	if room := b.room(); b.blocks.bytes.Load() > room {
		b.blocks.shrink(room)
	}
	if used > b.limit/4 && !b.reclaims.Load() && b.reclaims.CompareAndSwap(false, true) {
		time.AfterFunc(reclaimDelay, b.reclaim)
	}
	return true
}

// reclaimDelay is the time between a peak and the return of its memory.
const reclaimDelay = 5 * time.Second

// reclaim returns the memory of a peak to the system after its end. An idle
// runtime collects garbage every two minutes only.
func (b *Budget) reclaim() {
	if b.used.Load() > b.limit/4 {
		time.AfterFunc(reclaimDelay, b.reclaim)
		return
	}
	b.reclaims.Store(false)
	b.blocks.shrink(0)
	debug.FreeOSMemory()
}

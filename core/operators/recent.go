package operators

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// recentResults is a direct-mapped cache in front of the result cache, for results that
// are read again and again. A lookup costs less than one in the larger cache, which
// matters because a flag is evaluated in a microsecond or two.
type recentResults struct {
	seed  maphash.Seed
	slots [4096]atomic.Pointer[recentResult]
}

// recentResult is a result with its key.
type recentResult struct {
	cacheKey
	cachedResult
}

// maxRecentValue is the longest cached value.
const maxRecentValue = 128

func newRecentResults() *recentResults { return &recentResults{seed: maphash.MakeSeed()} }

func (r *recentResults) slot(q *cacheKey) *atomic.Pointer[recentResult] {
	return &r.slots[(maphash.String(r.seed, q.value)^q.program[0])%uint64(len(r.slots))]
}

// put stores a result in an empty slot, and replaces another one with a probability of
// 1/16, so that of two keys with one slot the more frequent one is there more often.
func (r *recentResults) put(at *atomic.Pointer[recentResult], q cacheKey, a cachedResult) {
	if len(q.value) > maxRecentValue || at.Load() != nil && rand.Uint32()%16 != 0 {
		return
	}
	q.value = strings.Clone(q.value)
	at.Store(&recentResult{q, a})
}

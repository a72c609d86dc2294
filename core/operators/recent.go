package operators

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// recent holds answers that are asked for again and again, each in the one place
// it may have: looking there costs less than the cache that decides what is kept
// does, and flags are decided in a microsecond or two.
type recent struct {
	seed  maphash.Seed
	slots [4096]atomic.Pointer[kept]
}

// kept is an answer and the question it is to.
type kept struct {
	question
	answer
}

// longestRecent bounds the values that have a place here.
const longestRecent = 128

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

func (r *recent) slot(q *question) *atomic.Pointer[kept] {
	return &r.slots[(maphash.String(r.seed, q.value)^q.program[0])%uint64(len(r.slots))]
}

// offer has an answer that the cache gave take its place, now and then: of two
// that share one, the one that is asked for more often is there more often.
func (r *recent) offer(at *atomic.Pointer[kept], q question, a answer) {
	if len(q.value) > longestRecent || at.Load() != nil && rand.Uint32()%16 != 0 {
		return
	}
	q.value = strings.Clone(q.value)
	at.Store(&kept{q, a})
}

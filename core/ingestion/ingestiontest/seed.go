package ingestiontest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Random is a source of random numbers that goroutines may share. With one seed it gives
// the same numbers in the order of its calls.
type Random struct {
	mu   sync.Mutex
	rand *rand.Rand
}

// NewRandom returns a source with the seed in GUIDON_SEED, or a new one, which it logs. It
// also returns the seed.
func NewRandom(t testing.TB) (r *Random, seed uint64) {
	t.Helper()
	seed = rand.Uint64()
	if text := os.Getenv("GUIDON_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("GUIDON_SEED: %v", err)
		}
	}
	t.Logf("GUIDON_SEED=%d", seed)
	return &Random{rand: rand.New(rand.NewPCG(seed, 1))}, seed
}

// IntN returns a number from 0 to n-1.
func (r *Random) IntN(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.IntN(n)
}

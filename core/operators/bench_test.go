package operators_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/match"
)

// BenchmarkKnown reads a cached result.
func BenchmarkKnown(b *testing.B) {
	h := newService(b, nil, opened("t"))
	p := h.pair(b, "t/pure", `"10.0.0.0/8"`, `"10.1.2.3"`)
	h.ask(b, noon, p)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := h.Known(p.Program, &p.Value, noon); !ok {
			b.Fatal("not cached")
		}
	}
}

// BenchmarkAsk measures a request of a hundred uncached pairs without the plugin's
// time.
func BenchmarkAsk(b *testing.B) {
	f := opened("t")
	h := newService(b, nil, f)
	pairs := make([]match.Pair, 100)
	for i := range pairs {
		pairs[i] = h.pair(b, "t/volatile", `"10.0.0.0/8"`, `"10.1.2.3"`)
		pairs[i].Value = match.Text(string(rune('a' + i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		h.ask(b, noon, pairs...)
		f.set(func() { f.batches = f.batches[:0] })
	}
}

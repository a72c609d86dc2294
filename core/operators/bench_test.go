package operators_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/match"
)

// BenchmarkKnown looks up what a plugin has said before.
func BenchmarkKnown(b *testing.B) {
	h := newHouse(b, nil, opened("t"))
	p := h.pair(b, "t/pure", `"10.0.0.0/8"`, `"10.1.2.3"`)
	h.ask(b, noon, p)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := h.Known(p.Program, &p.Value, noon); !ok {
			b.Fatal("forgotten")
		}
	}
}

// BenchmarkAsk is what asking costs besides the plugin: a hundred pairs that
// memory does not know.
func BenchmarkAsk(b *testing.B) {
	f := opened("t")
	h := newHouse(b, nil, f)
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

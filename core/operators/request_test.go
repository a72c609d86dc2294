package operators_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
)

func TestOneConcurrentCallToEachPlugin(t *testing.T) {
	t.Parallel()
	a, b := opened("a"), opened("b")
	var both sync.WaitGroup
	both.Add(2)
	together := func(ctx context.Context) error {
		both.Done()
		arrived := make(chan struct{})
		go func() { both.Wait(); close(arrived) }()
		select {
		case <-arrived:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a.hold, b.hold = together, together
	h := newService(t, nil, a, b)
	pairs := []match.Pair{
		h.pair(t, "a/pure", `"x"`, `"x"`), h.pair(t, "a/pure", `"x"`, `"y"`), h.pair(t, "a/pure", `"y"`, `"x"`),
		h.pair(t, "b/pure", `"x"`, `"x"`), h.pair(t, "a/volatile", `"y"`, `"y"`), h.pair(t, "b/pure", `"1"`, `1`),
		{Program: "unknown program"},
	}
	got := h.ask(t, noon, pairs...)
	if want := "true false false true true false unknown"; resultText(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if a.calls() != 1 || b.calls() != 1 {
		t.Errorf("%d and %d calls", a.calls(), b.calls())
	}
	if batch := a.batches[0]; len(batch.Programs) != 3 || len(batch.Values) != 2 || len(batch.Pairs) != 4 || !batch.Now.Equal(noon) {
		t.Errorf("%d programs, %d values, %d pairs", len(batch.Programs), len(batch.Values), len(batch.Pairs))
	}
}

// The validity of cached results depends on the purity of the operator.
func TestResultsAreCachedByPurity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		operator string
		name     string
		ttl      time.Duration // TTL of the operator
		answer   time.Duration // TTL of the answer
		after    time.Duration
		data     string // by then
		called   bool   // again
	}{
		{"t/pure", "forever", 0, 0, 1000 * time.Hour, "1", false},
		{"t/pure", "whatever the data", 0, 0, 0, "2", false},
		{"t/pure", "for the TTL of the operator", time.Minute, 0, 59 * time.Second, "1", false},
		{"t/pure", "and no longer", time.Minute, 0, 61 * time.Second, "1", true},
		{"t/pure", "at most five minutes with a TTL", time.Hour, 0, 6 * time.Minute, "1", true},
		{"t/pure", "for the TTL of the answer", time.Minute, time.Second, 2 * time.Second, "1", true},
		{"t/volatile", "never", time.Minute, time.Minute, 0, "1", true},
		{"t/time", "within its bucket", time.Minute, 0, 59 * time.Second, "1", false},
		{"t/time", "and not in the next one", time.Minute, 0, 60 * time.Second, "1", true},
		{"t/time", "for a second without a TTL", 0, 0, time.Second, "1", true},
		{"t/data", "as long as the data is the same", 0, 0, 4 * time.Minute, "1", false},
		{"t/data", "until there is other data", 0, 0, 0, "2", true},
		{"t/data", "for five minutes, to notice other data", 0, 0, 6 * time.Minute, "1", true},
	} {
		t.Run(tt.operator[2:]+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			f := opened("t")
			f.ttl = tt.answer
			for i := range f.offers {
				f.offers[i].CacheTTL = tt.ttl
			}
			h := newService(t, nil, f)
			p := h.pair(t, tt.operator, `"x"`, `"x"`)
			if got := h.ask(t, noon, p); got[0] != match.True {
				t.Fatalf("%v", got)
			}
			f.set(func() { f.data = tt.data })
			later := noon.Add(tt.after)
			if _, known := h.Known(p.Program, &p.Value, later); known == tt.called {
				t.Errorf("known: %v", known)
			}
			if got := h.ask(t, later, p); got[0] != match.True {
				t.Errorf("later: %v", got)
			}
			if again := f.calls() == 2; again != tt.called {
				t.Errorf("%d calls", f.calls())
			}
		})
	}
}

func TestValuesOfDifferentKindsAreDifferentKeys(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, nil, f)
	text, number := h.pair(t, "t/pure", `"1"`, `"1"`), h.pair(t, "t/pure", `"1"`, `1`)
	for range 2 {
		if got := resultText(h.ask(t, noon, text, number)); got != "true false" {
			t.Errorf("%s", got)
		}
	}
	if f.calls() != 1 {
		t.Errorf("%d calls", f.calls())
	}
}

// The config may differ between two openings of a plugin, so results do not carry over.
func TestReopenInvalidatesResults(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, nil, f)
	h.start(t)
	p := h.pair(t, "t/pure", `"x"`, `"x"`)
	h.ask(t, noon, p)

	// Old results are valid while the plugin is away, but not after its return.
	f.set(func() { f.away = true })
	if got := h.ask(t, noon, p); got[0] != match.True {
		t.Errorf("away: %v", got)
	}
	f.set(func() { f.away, f.version = false, 2 })
	eventually(t, "not cached", func() bool { _, known := h.Known(p.Program, &p.Value, noon); return !known })
	if got := h.ask(t, noon, p); got[0] != match.True || f.calls() != 2 {
		t.Errorf("again: %v, %d calls", got, f.calls())
	}
}

func TestFailedVerdictIsUnknown(t *testing.T) {
	t.Parallel()
	f := opened("t")
	f.verdicts = map[string]string{`"f"`: "failed", `"u"`: "unknown"}
	h := newService(t, nil, f)
	failed, unknown := h.pair(t, "t/pure", `"x"`, `"f"`), h.pair(t, "t/pure", `"x"`, `"u"`)
	for range 2 {
		if got := resultText(h.ask(t, noon, failed, unknown)); got != "unknown unknown" {
			t.Errorf("%s", got)
		}
	}
	// A failed verdict is cached; a missing answer is not.
	if len(f.batches) != 2 || len(f.batches[1].Pairs) != 1 {
		t.Errorf("%d calls", len(f.batches))
	}
	if h.count(t, "guidon_operators_unknown_total", "failed") != 1 || h.count(t, "guidon_operators_unknown_total", "unknown") != 2 {
		t.Error("not counted")
	}
}

func TestFailedCallIsUnknown(t *testing.T) {
	t.Parallel()
	for reason, hold := range map[string]func(context.Context) error{
		"timeout":     forever,
		"error":       func(context.Context) error { return errAway },
		"unavailable": nil,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			f := opened("t")
			h := newService(t, nil, f)
			p := h.pair(t, "t/pure", `"x"`, `"x"`)
			f.set(func() { f.hold, f.away = hold, hold == nil })
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			if reason != "timeout" {
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			}
			defer cancel()
			results := make([]match.Result, 1)
			h.MatchPairs(ctx, noon, []match.Pair{p}, results)
			if results[0] != match.Unknown || h.count(t, "guidon_operators_unknown_total", reason) != 1 {
				t.Errorf("%v", results)
			}
		})
	}
}

func TestZeroCacheBytesDisablesCache(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, func(c *operators.Config) { c.CacheBytes = 0 }, f)
	p := h.pair(t, "t/pure", `"x"`, `"x"`)
	h.ask(t, noon, p)
	h.ask(t, noon, p)
	if f.calls() != 2 {
		t.Errorf("%d calls", f.calls())
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, func(c *operators.Config) { c.CacheBytes = 100_000 }, f)
	o := h.pair(t, "t/pure", `"x"`, `"x"`)
	var pairs []match.Pair
	for i := range 10_000 {
		v := match.Text(fmt.Sprintf("value %200d", i))
		pairs = append(pairs, match.Pair{Program: o.Program, Value: v})
	}
	h.ask(t, noon, pairs...)
	kept := func() (n int) {
		for i := range pairs {
			if _, ok := h.Known(pairs[i].Program, &pairs[i].Value, noon); ok {
				n++
			}
		}
		return n
	}
	eventually(t, "few are left", func() bool { n := kept(); return n > 0 && n < 500 })
}

func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, nil, f)
	h.start(t)
	var pairs []match.Pair
	for i := range 20 {
		pairs = append(pairs, h.pair(t, "t/pure", fmt.Sprintf(`"%d"`, i%5), fmt.Sprintf(`"%d"`, i)))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				results := h.ask(t, noon, pairs...)
				for i, r := range results {
					if r != match.Of(i < 5) {
						t.Errorf("%d: %s", i, r)
						return
					}
				}
			}
		})
	}
	for v := range uint64(10) {
		f.set(func() { f.version = v + 2 })
		_ = h.List()
	}
	wg.Wait()
}

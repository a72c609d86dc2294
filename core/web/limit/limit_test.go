package limit_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/limit"
)

// The memory of a limiter is bounded, and a key in use keeps its bucket while
// others are replaced.
func TestLimiterIsBounded(t *testing.T) {
	t.Parallel()
	l := limit.New[int](limit.Rate{PerSecond: 0.0001, Burst: 1}, 100)
	refused := 0
	for n := range 10_000 {
		if err := l.Take(1_000_000); err != nil {
			refused++
		}
		if err := l.Take(n); err != nil {
			t.Fatalf("key %d: %v", n, err)
		}
	}
	if l.Len() > 100 {
		t.Errorf("%d buckets, want at most 100", l.Len())
	}
	if refused < 9_900 {
		t.Errorf("a key in use was refused %d times of 9,999", refused)
	}
}

// Past the limit of an address, unknown keys are not looked up; valid keys and other
// addresses are.
func TestFailures(t *testing.T) {
	t.Parallel()
	refused, lookups := 0, 0
	f := limit.NewFailures(limit.Rate{PerSecond: 0.0001, Burst: 3}, func(key string) bool { return key == "good" }, func() { refused++ })
	find := func(_ context.Context, key string) (string, error) {
		lookups++
		if key == "good" || key == "new" {
			return key, nil
		}
		return "", fault.New(fault.Unauthenticated, "invalid_api_key", "")
	}
	ask := func(address, key string) error {
		_, err := limit.Find(t.Context(), f, func() netip.Addr { return netip.MustParseAddr(address) }, key, find)
		return err
	}
	for n := range 3 {
		if err := ask("192.0.2.1", "bad"); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("failure %d: %v", n, err)
		}
	}
	before := lookups
	if err := ask("192.0.2.1", "bad"); !fault.Is(err, fault.Throttled) || fault.From(err).RetryAfter <= 0 {
		t.Errorf("past the limit: %v", err)
	}
	if err := ask("192.0.2.1", "new"); !fault.Is(err, fault.Throttled) {
		t.Errorf("a key that is not in use: %v", err)
	}
	if lookups != before || refused != 2 {
		t.Errorf("%d lookups and %d refusals, want 0 and 2", lookups-before, refused)
	}
	if err := ask("192.0.2.1", "good"); err != nil {
		t.Errorf("a key in use: %v", err)
	}
	if err := ask("192.0.2.2", "new"); err != nil {
		t.Errorf("another address: %v", err)
	}
}

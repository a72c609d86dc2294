package budget_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/guidonhq/guidon/core/web/budget"
)

// pauseOf returns how long the work of an account pauses in n steps.
func pauseOf(a *budget.Account, n int) time.Duration {
	start := time.Now()
	for range n {
		a.Yield()
	}
	return time.Since(start)
}

func TestLargeRequestsPauseForSmallOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(1 << 30)
		large, small := account(b), account(b)
		if err := large.Take(2 * budget.SmallBytes); err != nil {
			t.Fatal(err)
		}
		large.BeginSmall() // it is no small one
		if d := pauseOf(large, 100); d > time.Millisecond {
			t.Errorf("100 steps pause %v without small requests", d)
		}
		small.BeginSmall()
		if d := pauseOf(large, 100); d < 10*time.Millisecond {
			t.Errorf("100 steps pause %v beside a small request", d)
		}
		if d := pauseOf(large, 100_000); d > 2*time.Second {
			t.Errorf("a request pauses %v in total", d)
		}
		if d := pauseOf(small, 100); d != 0 {
			t.Errorf("a small request pauses %v", d)
		}
	})
}

func TestSmallRequestsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(a *budget.Account){
		"at the end":          (*budget.Account).EndSmall,
		"at the release":      (*budget.Account).Release,
		"when they get large": func(a *budget.Account) { _ = a.Take(2 * budget.SmallBytes) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := budget.New(1 << 30)
				large, small := account(b), account(b)
				if err := large.Take(2 * budget.SmallBytes); err != nil {
					t.Fatal(err)
				}
				small.BeginSmall()
				end(small)
				small.EndSmall()
				if d := pauseOf(large, 100); d > time.Millisecond {
					t.Errorf("100 steps pause %v after the last small request", d)
				}
			})
		})
	}
}

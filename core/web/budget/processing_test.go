package budget_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/budget"
)

// occupyAll returns large accounts that occupy all slots of b.
func occupyAll(t *testing.T, b *budget.Budget) []*budget.Account {
	t.Helper()
	out := make([]*budget.Account, max(1, runtime.GOMAXPROCS(0)/2))
	for i := range out {
		out[i] = account(b)
		if err := out[i].Take(2 * budget.SmallBytes); err != nil {
			t.Fatal(err)
		}
		if err := out[i].StartProcessing(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestLargeRequestsWaitForASlot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*budget.Account){"at the end": (*budget.Account).EndProcessing, "at the release": (*budget.Account).Release} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := budget.New(1 << 30)
				first := occupyAll(t, b)
				started, done := account(b), make(chan error)
				if err := started.StartProcessing(); err != nil {
					t.Fatal("a small request: ", err)
				}
				go func() { done <- started.Take(2 * budget.SmallBytes) }() // it becomes a large one
				time.Sleep(time.Second)
				select {
				case err := <-done:
					t.Fatalf("a large request did not wait: %v", err)
				default:
				}
				end(first[0])
				if err := <-done; err != nil {
					t.Error(err)
				}
				started.Release()
				for _, a := range first {
					a.Release()
				}
				for _, a := range occupyAll(t, b) { // no slot is lost
					a.Release()
				}
			})
		})
	}
}

func TestLargeRequestFailsWithoutASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(1 << 30)
		first := occupyAll(t, b)
		a := account(b)
		if err := a.Take(2 * budget.SmallBytes); err != nil {
			t.Fatal("a request that is not processed waits: ", err)
		}
		begin := time.Now()
		err := a.StartProcessing()
		if f := fault.From(err); f == nil || f.Code != budget.CodeSaturated || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		a.Release() // returns no slot of others
		small := account(b)
		if err := small.StartProcessing(); err != nil {
			t.Error(err)
		}
		if err := small.Take(budget.SmallBytes); err != nil {
			t.Error(err)
		}
		for _, a := range first {
			a.Release()
		}
	})
}

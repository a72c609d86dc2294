package budget_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/budget"
)

func account(b *budget.Budget) *budget.Account {
	a := new(budget.Account)
	a.Open(b)
	return a
}

func TestLargeRequestsLeaveAQuarterToSmallOnes(t *testing.T) {
	t.Parallel()
	b := budget.New(16 << 20)
	first, second, small := account(b), account(b), account(b)
	if err := first.Take(10 << 20); err != nil {
		t.Fatal(err)
	}
	err := second.Take(3 << 20)
	if f := fault.From(err); f == nil || f.Kind != fault.Unavailable || f.Code != budget.CodeSaturated || f.RetryAfter <= 0 {
		t.Errorf("a large request past three quarters: %v", err)
	}
	if second.Held() != 0 || b.Used() != 10<<20 {
		t.Errorf("after the failure: held %d, used %d", second.Held(), b.Used())
	}
	for range 6 {
		if err := account(b).Take(budget.SmallBytes); err != nil {
			t.Errorf("a small request: %v", err)
		}
	}
	if err := small.Take(1); err == nil {
		t.Error("the whole budget is used and a request got more")
	}
	first.Release()
	first.Release()
	if b.Used() != 6<<20 {
		t.Errorf("used %d after a release", b.Used())
	}
}

func TestTheOnlyRequestSucceeds(t *testing.T) {
	t.Parallel()
	b := budget.New(10)
	a := account(b)
	for range 3 {
		if err := a.Take(1 << 20); err != nil {
			t.Fatal(err)
		}
	}
	if err := account(b).Take(1); err == nil {
		t.Error("a second request succeeds past the budget")
	}
}

func TestNilIsUnlimited(t *testing.T) {
	t.Parallel()
	var a *budget.Account
	if err := errors.Join(a.Take(1<<40), account(budget.New(0)).Take(1<<40)); err != nil {
		t.Error(err)
	}
	a.Return(1)
	a.Release()
}

func TestAccountsOfManyGoroutinesAddUp(t *testing.T) {
	t.Parallel()
	b := budget.New(1 << 20)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				a := account(b)
				_ = a.Take(100 << 10)
				a.Return(1000)
				_ = a.Take(200 << 10)
				a.Release()
			}
		})
	}
	wg.Wait()
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

func TestBufferGrowsWithinItsLimitAndPays(t *testing.T) {
	t.Parallel()
	const limit = 3 << 20
	b := budget.New(100 << 20)
	a := account(b)
	buf, err := budget.NewBuffer(a, 10)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	for i := 0; want.Len()+70_000 <= limit; i++ {
		part := bytes.Repeat([]byte{byte(i)}, 70_000)
		want.Write(part)
		if err := buf.Append(part, limit); err != nil {
			t.Fatal(err)
		}
		if a.Held() < cap(buf.B) || cap(buf.B) > limit {
			t.Fatalf("held %d for a buffer of %d", a.Held(), cap(buf.B))
		}
	}
	if !bytes.Equal(buf.B, want.Bytes()) {
		t.Error("the bytes changed while the buffer grew")
	}
	if err := buf.Append(make([]byte, 70_000), limit); !errors.Is(err, budget.ErrTooLarge) {
		t.Errorf("past the limit: %v", err)
	}
	buf.Release()
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

func TestReadBody(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 100_000)
	for name, tc := range map[string]struct {
		n, limit int
		want     error
	}{
		"of known size":           {len(text), 1 << 20, nil},
		"of unknown size":         {-1, 1 << 20, nil},
		"that ends early":         {len(text) + 1, 2 << 20, io.ErrUnexpectedEOF},
		"past the limit":          {-1, 999_999, budget.ErrTooLarge},
		"exactly of its limit":    {-1, 1_000_000, nil},
		"past a small first step": {-1, 100, budget.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			buf, err := budget.NewBuffer(nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer buf.Release()
			err = buf.ReadBody(strings.NewReader(text), tc.n, tc.limit)
			if !errors.Is(err, tc.want) || err == nil && string(buf.B) != text {
				t.Errorf("%d bytes, %v; want %v", len(buf.B), err, tc.want)
			}
		})
	}
}

package budget_test

import (
	"testing"
	"unsafe"

	"github.com/guidonhq/guidon/core/web/budget"
)

// largeBuffer returns a buffer with n zero bytes.
func largeBuffer(t *testing.T, a *budget.Account, n int) *budget.Buffer {
	t.Helper()
	buf, err := budget.NewBuffer(a, 0)
	if err == nil {
		err = buf.Append(make([]byte, n), 32<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(buf.B) != n || a.Held() != cap(buf.B) {
		t.Fatalf("%d bytes of %d, %d paid", len(buf.B), cap(buf.B), a.Held())
	}
	return buf
}

// reused reports whether a buffer of n bytes gets the memory of an earlier one of
// as many bytes, after another request has held taken bytes in between.
func reused(t *testing.T, b *budget.Budget, n, taken int) bool {
	t.Helper()
	a := account(b)
	buf := largeBuffer(t, a, n)
	first := unsafe.SliceData(buf.B)
	buf.Release()
	other := account(b)
	if err := other.Take(taken); err != nil {
		t.Fatal(err)
	}
	other.Release()
	buf = largeBuffer(t, a, n)
	defer buf.Release()
	return unsafe.SliceData(buf.B) == first
}

func TestLargeBuffersReuseMemory(t *testing.T) {
	t.Parallel()
	for _, n := range []int{600 << 10, 3 << 20, 19 << 20} {
		b := budget.New(64 << 20)
		if !reused(t, b, n, 20<<20) {
			t.Errorf("%d bytes are allocated again", n)
		}
		if b.Used() != 0 {
			t.Errorf("%d bytes in use", b.Used())
		}
	}
}

func TestARequestReusesMemoryWhileOthersHoldTheirs(t *testing.T) {
	t.Parallel()
	b := budget.New(64 << 20) // 48 MiB are for large requests
	waiting := account(b)
	if err := waiting.Take(42 << 20); err != nil {
		t.Fatal(err)
	}
	for range 20 { // sizes that are not needed again
		reused(t, b, 700<<10, 0)
		reused(t, b, 1<<20, 0)
	}
	if !reused(t, b, 3<<20, 0) {
		t.Error("3 MiB are allocated again")
	}
	waiting.Release()
	if b.Used() != 0 {
		t.Errorf("%d bytes in use", b.Used())
	}
}

func TestReusableMemoryStaysWithinTheBudget(t *testing.T) {
	t.Parallel()
	if b := budget.New(64 << 20); reused(t, b, 19<<20, 40<<20) { // 48 MiB are for large requests
		t.Error("memory is kept that a request has taken")
	}
}

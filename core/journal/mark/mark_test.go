package mark_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/core/journal/mark"
)

func TestMarkIsReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mark")
	if _, found, err := mark.Read(path); found || err != nil {
		t.Fatalf("found %v (%v) without a file", found, err)
	}
	f, err := mark.Open(path, "A")
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []uint64{0, 7, 1 << 40, 12} {
		if err := f.Write(last, last == 7); err != nil {
			t.Fatal(err)
		}
		if m, found, err := mark.Read(path); err != nil || !found || m != (mark.Mark{ID: "A", Last: last}) {
			t.Fatalf("got %+v %v (%v), want record %d", m, found, err, last)
		}
	}
	if err := f.Close(13); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range content {
		damaged := append([]byte(nil), content...)
		damaged[i] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := mark.Read(path); !errors.Is(err, mark.ErrDamaged) {
			t.Fatalf("byte %d flipped: %v, want ErrDamaged", i, err)
		}
	}
}

// An idle journal costs nothing: Run waits for the next record instead of polling.
func TestRunWaitsWhileTheMarkIsCurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mark")
	f, err := mark.Open(path, "A")
	if err != nil {
		t.Fatal(err)
	}
	waiting, next := make(chan uint64), make(chan struct{})
	var newest atomic.Uint64
	newest.Store(3)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx, newest.Load, func(ctx context.Context, after uint64) error {
			select {
			case waiting <- after:
			case <-ctx.Done():
				return ctx.Err()
			}
			<-next
			return nil
		}, func(err error) { t.Error(err) })
	}()
	for last := uint64(3); last < 6; last++ {
		if after := <-waiting; after != last {
			t.Errorf("waits for a record after %d, want %d", after, last)
		}
		if m, _, err := mark.Read(path); err != nil || m.Last != last {
			t.Errorf("the mark is %+v (%v), want %d", m, err, last)
		}
		newest.Store(last + 1)
		next <- struct{}{}
	}
	cancel()
	<-done
	if err := f.Close(6); err != nil {
		t.Error(err)
	}
}

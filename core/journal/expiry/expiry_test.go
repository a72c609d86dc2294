package expiry_test

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/journal/expiry"
)

func TestCut(t *testing.T) {
	t.Parallel()
	blocks := []expiry.Block{{Last: 1, At: 10, Pos: 0}, {Last: 5, At: 20, Pos: 100}, {Last: 6, At: 30, Pos: 200}}
	for name, c := range map[string]struct {
		maxBytes, before, step int64
		cut                    uint64
		more                   bool
	}{
		"no bound":     {0, 0, 1000, 0, false},
		"size":         {150, 0, 1000, 5, false},
		"age":          {0, 25, 1000, 5, false},
		"everything":   {1, 0, 1000, 6, true},
		"a small step": {1, 0, 100, 5, true},
	} {
		if cut, more := expiry.Cut(blocks, 300, c.maxBytes, c.before, c.step, len(blocks)); cut != c.cut || more != c.more {
			t.Errorf("%s: %d %v, want %d %v", name, cut, more, c.cut, c.more)
		}
	}
}

func TestBoundsChange(t *testing.T) {
	t.Parallel()
	var b expiry.Bounds
	if b.Due(1<<40, 0, 1<<50) {
		t.Error("due without bounds")
	}
	b.Set(100, 0)
	if !b.Due(101, 5, 5) || b.Due(100, 5, 5) {
		t.Error("size")
	}
	b.Set(0, time.Millisecond)
	if !b.Due(0, 0, 1001) || b.Due(0, 1, 1001) || !b.Due(0, 1002, 1001) {
		t.Error("age")
	}
}

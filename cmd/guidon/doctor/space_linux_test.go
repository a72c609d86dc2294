package doctor

import (
	"testing"

	"github.com/guidonhq/guidon/app"
)

// TestSpace: the guard is the smaller of bytes and percent, as in the journal.
func TestSpace(t *testing.T) {
	t.Parallel()
	var cfg app.Config
	cfg.Journal.MinFreeBytes, cfg.Journal.MinFreePercent = 1<<30, 5
	for _, c := range []struct {
		name       string
		free, size int64
		inodes     bool
		state      string
	}{
		{"a large disk: bytes count", 11 << 30, 252 << 30, true, OK},
		{"a large disk, less than twice the guard", 3 << 29, 252 << 30, true, Warn},
		{"a large disk, below the guard", 1<<30 - 1, 252 << 30, true, Fail},
		{"a small disk: percent counts", 900 << 20, 4 << 30, true, OK},
		{"a small disk, below the guard", 100 << 20, 4 << 30, true, Fail},
		{"no inodes", 11 << 30, 252 << 30, false, Warn},
	} {
		if r := space(cfg, "/data", c.free, c.size, c.inodes); r.State != c.state {
			t.Errorf("%s: %+v, want %v", c.name, r, c.state)
		}
	}
	cfg.Journal.MinFreeBytes = 0
	if r := space(cfg, "/data", 1, 252<<30, true); r.State != OK {
		t.Errorf("without a guard: %+v", r)
	}
}

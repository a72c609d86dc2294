package journal_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"
	_ "modernc.org/sqlite" // opens the file of a journal

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/journaltest"
	_ "github.com/guidonhq/guidon/core/sqlitepages" // the memory of the server
)

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		tail int
	}{{"reading from memory", 8 << 20}, {"reading from the file", 0}} {
		t.Run(c.name, func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T, dir string) journal.Journal {
				cfg := testConfig()
				cfg.MaxBytes, cfg.TailBytes = 1, c.tail
				return open(t, cfg, dir, journal.Hooks{})
			})
		})
	}
}

// testConfig keeps everything, never trims by itself and has no guard.
func testConfig() journal.Config {
	cfg := journal.DefaultConfig()
	cfg.MaxBytes, cfg.MaxAge, cfg.MinFreeBytes = 0, 0, 0
	cfg.TrimInterval = time.Hour
	return cfg
}

func open(t testing.TB, cfg journal.Config, dir string, h journal.Hooks) journal.Journal {
	t.Helper()
	j, err := journal.OpenHooked(cfg, dir, zap.NewNop(), nil, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close(context.Background()) })
	return j
}

package eventlog_test

import (
	"testing"
	"time"

	"go.uber.org/zap"
	_ "modernc.org/sqlite" // opens the file of a journal

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/eventlogtest"
	"github.com/guidonhq/guidon/core/journal"
)

// keepJournal lets a test trim the journal below a log.
type keepJournal struct {
	eventlog.Log
	j journal.Journal
}

func TestSingle(t *testing.T) {
	t.Parallel()
	eventlogtest.Run(t, eventlogtest.Log{
		New: func(t *testing.T) func(t *testing.T) eventlog.Log {
			dir := t.TempDir()
			return func(t *testing.T) eventlog.Log {
				cfg := journal.DefaultConfig()
				cfg.MaxBytes, cfg.TrimInterval, cfg.MinFreeBytes = 1, time.Hour, 0
				j, err := journal.Open(cfg, dir, zap.NewNop(), nil)
				if err != nil {
					t.Fatal(err)
				}
				return keepJournal{eventlog.Single(j), j}
			}
		},
		Trim: func(t *testing.T, log eventlog.Log) {
			if _, err := log.(keepJournal).j.Trim(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	})
}

package journal_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/guidonhq/guidon/core/journal"
)

// The lag of a reader is known without the data of the record that it waits for:
// a large one is neither read nor decompressed for a number.
func TestLagIsKnownWithoutTheData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fillFile(t, dir, 3, 500)
	cfg := testConfig()
	cfg.TailBytes = 0
	j := open(t, cfg, dir, journal.Hooks{})
	intact := stats(t, j).Readers[0]
	must(t, j.Close(context.Background()))
	db, err := sql.Open("sqlite", file(dir))
	must(t, err)
	_, err = db.ExecContext(context.Background(), "UPDATE blocks SET data = zeroblob(10) WHERE seq = 1")
	must(t, err)
	must(t, db.Close())
	got := stats(t, open(t, cfg, dir, journal.Hooks{})).Readers[0]
	if got.Lag != 3 || got.Bytes != 1500 || got.OldestAt.IsZero() || got != intact {
		t.Errorf("%+v without the data, %+v with it", got, intact)
	}
}

// TestLagLeavesOutSkippedRecords checks that records without work for a reader are no
// backlog, and that its cursor stays where it is.
func TestLagLeavesOutSkippedRecords(t *testing.T) {
	t.Parallel()
	j := open(t, testConfig(), t.TempDir(), journal.Hooks{})
	for range 5 {
		_, err := j.Append(t.Context(), []byte("record"))
		must(t, err)
	}
	_, err := j.Register(t.Context(), "imports", journal.Begin)
	must(t, err)
	for through, want := range map[uint64]int64{0: 5, 3: 2, 5: 0} {
		j.(interface{ Skipped(string, uint64) }).Skipped("imports", through)
		if r := stats(t, j).Readers[0]; r.Lag != want || r.Position.Seq != 0 {
			t.Errorf("after skipping %d records: %+v, want a lag of %d", through, r, want)
		}
	}
}

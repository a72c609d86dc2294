package journal_test

import (
	"context"
	"database/sql"
	"errors"
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

// The lag of a reader before a damaged block of several records is about as large as their share of all.
func TestLagBeforeADamagedBlock(t *testing.T) {
	t.Parallel()
	dir, g := t.TempDir(), newGate()
	cfg := testConfig()
	cfg.TailBytes = 0
	j := open(t, cfg, dir, journal.Hooks{BeforeCommit: g.hook})
	first := g.hold(t, j)
	errs, wait := appendMany(j, 5)
	waiting(t, j, 5)
	for range 4 { // both groups, and the cursor
		g.pass <- struct{}{}
	}
	wait()
	must(t, errors.Join(append(errs, <-first)...))
	_, err := j.Register(context.Background(), "reader", journal.Begin)
	must(t, err)
	g.pass <- struct{}{}
	must(t, j.Commit(context.Background(), "reader", journal.Position{Seq: 1}))
	must(t, j.Close(context.Background()))
	query(t, file(dir), "UPDATE blocks SET crc = crc + 1 WHERE n = 5")

	s := stats(t, open(t, cfg, dir, journal.Hooks{}))
	if r := s.Readers[0]; r.Lag != 5 || r.Bytes != s.Bytes*5/6 || !r.OldestAt.IsZero() {
		t.Errorf("%+v, want a lag of 5 of 6 records and a share of %d bytes", r, s.Bytes)
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

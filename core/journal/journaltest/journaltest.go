// Package journaltest tests the contract of journal.Journal.
//
// Every implementation must pass Run. The tests use only the interface; each
// implementation tests its own failures (a full disk, a crash) itself.
package journaltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/journal"
)

// patience is how long a test waits for something that must happen.
const patience = 30 * time.Second

// Run checks the journal that open makes. Each test calls open with a
// directory of its own, and some call it again with the same one after they
// closed the first. The journal must be opened with a retention of one byte,
// so that Trim removes whatever no reader needs, and must not trim by itself
// within a minute.
func Run(t *testing.T, open func(t *testing.T, dir string) journal.Journal) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, k *kit)
	}{
		{"appended records are read back byte for byte", readBack},
		{"the caller's memory is not kept after an append", appendCopies},
		{"the records read belong to the caller", readCopies},
		{"a read keeps to its limits but gives at least one record", readLimits},
		{"a read after the end is empty and no error", readAfterEnd},
		{"many producers get different numbers and lose nothing", manyProducers},
		{"one producer's records keep their order", producerOrder},
		{"time never runs backwards", timeOrder},
		{"an ended context appends nothing", endedContext},
		{"wait returns when a record comes", waitForRecord},
		{"wait ends with its context", waitEnds},
		{"everything is there after reopening", reopen},
		{"a new reader begins at the begin or at the end", startsAt},
		{"a registered reader resumes where it was", resumes},
		{"a cursor never moves backwards", neverBackwards},
		{"a cursor is never beyond the newest record", neverAhead},
		{"a cursor is kept over reopening", cursorSurvives},
		{"an unknown reader cannot commit", unknownReader},
		{"an unregistered reader starts anew", unregister},
		{"readers are independent", independent},
		{"trim keeps what a reader still needs", trimKeeps},
		{"trim removes what all readers have done", trimRemoves},
		{"numbers are never given twice", neverTwice},
		{"stats describe the records and the readers", stats},
		{"a closed journal refuses everything and can be closed again", closed},
		{"close ends waiting readers", closeEndsWait},
		{"everything at once", everything},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := &kit{dir: t.TempDir(), open: open}
			k.Journal = open(t, k.dir)
			t.Cleanup(func() { _ = k.Close(context.Background()) })
			c.test(t, k)
		})
	}
}

// kit is a journal with helpers for tests.
type kit struct {
	journal.Journal
	dir  string
	open func(t *testing.T, dir string) journal.Journal
}

func (k *kit) reopen(t *testing.T) {
	t.Helper()
	must(t, k.Close(ctx(t)))
	k.Journal = k.open(t, k.dir)
}

func (k *kit) append(t *testing.T, data string) uint64 {
	t.Helper()
	seq, err := k.Append(ctx(t), []byte(data))
	must(t, err)
	return seq
}

// fill appends n records "0", "1", … and returns the number of the last.
func (k *kit) fill(t *testing.T, n int) (last uint64) {
	t.Helper()
	for i := range n {
		last = k.append(t, fmt.Sprint(i))
	}
	return last
}

func (k *kit) read(t *testing.T, after uint64, maxRecords, maxBytes int) []journal.Record {
	t.Helper()
	records, err := k.Read(ctx(t), after, maxRecords, maxBytes)
	must(t, err)
	return records
}

// all reads everything that is kept.
func (k *kit) all(t *testing.T) (records []journal.Record) {
	t.Helper()
	for after := uint64(0); ; {
		some := k.read(t, after, 100, 1<<20)
		if len(some) == 0 {
			return records
		}
		records = append(records, some...)
		after = some[len(some)-1].Seq
	}
}

func (k *kit) register(t *testing.T, reader string, from journal.Start) journal.Position {
	t.Helper()
	p, err := k.Register(ctx(t), reader, from)
	must(t, err)
	return p
}

func (k *kit) commit(t *testing.T, reader string, p journal.Position) {
	t.Helper()
	must(t, k.Commit(ctx(t), reader, p))
}

func (k *kit) trim(t *testing.T) int64 {
	t.Helper()
	n, err := k.Trim(ctx(t))
	must(t, err)
	return n
}

func (k *kit) stats(t *testing.T) journal.Stats {
	t.Helper()
	s, err := k.Stats(ctx(t))
	must(t, err)
	return s
}

// ctx ends when the test should have.
func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

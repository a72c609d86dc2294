package cursors_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

func at(seq uint64, index uint32, count uint64) journal.Position {
	return journal.Position{Seq: seq, Index: index, Count: count}
}

func run(t *testing.T, fn func(t *testing.T, d *db.DB, s *cursors.Store)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		fn(t, d, cursors.New(d))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if fault.From(err) == nil || fault.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, _ *db.DB, s *cursors.Store) {
		k := cursors.Key{Log: "log", Partition: 3, Reader: "sink"}
		wantCode(t, s.Commit(t.Context(), k, 1, at(1, 0, 0)), "reader_not_found")
		p, err := s.Register(t.Context(), k, 1, at(5, 0, 0))
		must(t, err)
		if p != at(5, 0, 0) {
			t.Fatalf("begins at %v", p)
		}
		must(t, s.Commit(t.Context(), k, 1, at(7, 2, 9)))
		must(t, s.Commit(t.Context(), k, 1, at(7, 2, 9)))
		for _, p := range []journal.Position{at(6, 9, 9), at(7, 1, 9), at(8, 0, 8), at(0, 0, 0)} {
			wantCode(t, s.Commit(t.Context(), k, 1, p), "cursor_backwards")
		}
		if p, err = s.Register(t.Context(), k, 1, at(100, 0, 0)); err != nil || p != at(7, 2, 9) {
			t.Fatalf("resumes at %v, %v", p, err)
		}
		other := k
		other.Partition = 4
		wantCode(t, s.Commit(t.Context(), other, 1, at(8, 0, 9)), "reader_not_found")
		wantCode(t, s.Commit(t.Context(), k, 1, at(1<<63, 0, 9)), "cursor_ahead")
		_, err = s.Register(t.Context(), cursors.Key{Log: "log", Reader: strings.Repeat("x", 201)}, 1, at(0, 0, 0))
		wantCode(t, err, "reader_name")
	})
}

// TestTokens checks that a higher token takes all readers of a partition over, and only
// those.
func TestTokens(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, _ *db.DB, s *cursors.Store) {
		a, b := cursors.Key{Log: "log", Reader: "a"}, cursors.Key{Log: "log", Reader: "b"}
		elsewhere := cursors.Key{Log: "log", Partition: 1, Reader: "a"}
		for _, k := range []cursors.Key{a, b, elsewhere} {
			_, err := s.Register(t.Context(), k, 1, at(0, 0, 0))
			must(t, err)
			must(t, s.Commit(t.Context(), k, 1, at(3, 0, 3)))
		}
		p, err := s.Register(t.Context(), a, 2, at(0, 0, 0))
		must(t, err)
		if p != at(3, 0, 3) {
			t.Fatalf("the new owner resumes at %v", p)
		}
		wantCode(t, s.Commit(t.Context(), a, 1, at(4, 0, 4)), "lease_lost")
		wantCode(t, s.Commit(t.Context(), b, 1, at(4, 0, 4)), "lease_lost")
		wantCode(t, s.Unregister(t.Context(), b, 1), "lease_lost")
		_, err = s.Register(t.Context(), a, 1, at(0, 0, 0))
		wantCode(t, err, "lease_lost")
		_, err = s.Register(t.Context(), cursors.Key{Log: "log", Reader: "new"}, 1, at(0, 0, 0))
		wantCode(t, err, "lease_lost")
		must(t, s.Commit(t.Context(), elsewhere, 1, at(4, 0, 4)))
		must(t, s.Commit(t.Context(), a, 2, at(4, 0, 4)))
		must(t, s.Unregister(t.Context(), b, 2))
		must(t, s.Unregister(t.Context(), b, 2))
		list, err := s.List(t.Context(), "log")
		must(t, err)
		if len(list) != 2 || list[0] != (cursors.Cursor{Reader: "a", Token: 2, Position: at(4, 0, 4)}) || list[1].Partition != 1 {
			t.Fatalf("cursors: %v", list)
		}
	})
}

// TestTakeoverWaitsForTransaction checks that a takeover either sees the commit of an open
// transaction, or makes it fail.
func TestTakeoverWaitsForTransaction(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, d *db.DB, s *cursors.Store) {
		k := cursors.Key{Log: "log", Reader: "worker"}
		_, err := s.Register(t.Context(), k, 1, at(0, 0, 0))
		must(t, err)
		var wg sync.WaitGroup
		var taken journal.Position
		must(t, d.Tx(t.Context(), func(ctx context.Context) error {
			if err := s.Commit(ctx, k, 1, at(1, 0, 1)); err != nil {
				return err
			}
			wg.Go(func() {
				var err error
				if taken, err = s.Register(t.Context(), k, 2, at(0, 0, 0)); err != nil {
					t.Error(err)
				}
			})
			return s.Commit(ctx, k, 1, at(2, 0, 2))
		}))
		wg.Wait()
		if taken != at(2, 0, 2) {
			t.Fatalf("taken over at %v", taken)
		}
		wantCode(t, s.Commit(t.Context(), k, 1, at(3, 0, 3)), "lease_lost")
	})
}

// TestCommitRollsBack checks that a cursor moves with the transaction of its context.
func TestCommitRollsBack(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, d *db.DB, s *cursors.Store) {
		k := cursors.Key{Log: "log", Reader: "worker"}
		_, err := s.Register(t.Context(), k, 1, at(0, 0, 0))
		must(t, err)
		if err := d.Tx(t.Context(), func(ctx context.Context) error {
			must(t, s.Commit(ctx, k, 1, at(1, 0, 1)))
			return context.Canceled
		}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		p, err := s.Register(t.Context(), k, 1, at(0, 0, 0))
		must(t, err)
		if p != at(0, 0, 0) {
			t.Fatalf("position %v", p)
		}
	})
}

func TestAttach(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, _ *db.DB, s *cursors.Store) {
		ctx := t.Context()
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, id := range []string{"kafka/a", "kafka/b"} {
			wg.Go(func() { errs[i] = s.Attach(ctx, id, 12, nil) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("two logs at once: %v", errs)
		}
		first, second := "kafka/a", "kafka/b"
		if errs[0] != nil {
			first, second = second, first
		}
		must(t, s.Attach(ctx, first, 12, nil))
		if err := s.Attach(ctx, first, 13, nil); err == nil || !strings.Contains(err.Error(), "13 partitions now and had 12") {
			t.Fatalf("another number of partitions: %v", err)
		}
		if err := s.Attach(ctx, second, 12, nil); err == nil || !strings.Contains(err.Error(), "belongs to the log "+first) {
			t.Fatalf("another log: %v", err)
		}
		asked := 0
		answer := errors.New("the other nodes use it")
		replace := func(context.Context) error { asked++; return answer }
		if err := s.Attach(ctx, second, 3, replace); !errors.Is(err, answer) {
			t.Fatalf("a replacement that is refused: %v", err)
		}
		must(t, s.Attach(ctx, first, 12, nil))
		answer = nil
		must(t, s.Attach(ctx, second, 3, replace))
		must(t, s.Attach(ctx, second, 3, replace))
		must(t, s.Attach(ctx, second, 3, nil))
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
	})
}

package cursors_test

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// FuzzCommits makes any commits of a cursor, of which the largest numbers are beyond what
// the database holds, and compares it with a model: it moves under a token that is not
// lower, to a position that is not earlier, and is read as it was written.
func FuzzCommits(f *testing.F) {
	f.Add([]byte{1, 10, 0, 5, 1, 10, 3, 6, 0, 200, 0, 9, 2, 255, 255, 255, 2, 10, 2, 6})
	f.Add([]byte{0, 0, 0, 0, 3, 254, 0, 254, 3, 253, 0, 255, 3, 254, 1, 254})
	d := dbtest.SQLite(f)
	store, made := cursors.New(d), &atomic.Int64{}
	f.Fuzz(func(t *testing.T, moves []byte) {
		key := cursors.Key{Log: fmt.Sprint("log", made.Add(1)), Reader: "worker"}
		model, token := journal.Position{}, int64(0)
		if _, err := store.Register(t.Context(), key, 0, model); err != nil {
			t.Fatal(err)
		}
		for ; len(moves) >= 4 && len(moves) < 400; moves = moves[4:] {
			to := journal.Position{Seq: large(moves[1]), Index: uint32(moves[2]) << 24, Count: large(moves[3])}
			by := int64(moves[0] % 4)
			held := to.Seq <= math.MaxInt64 && to.Count <= math.MaxInt64
			later := to.Count >= model.Count && (to.Seq > model.Seq || to.Seq == model.Seq && to.Index >= model.Index)
			err := store.Commit(t.Context(), key, by, to)
			if moves := held && by >= token && later; moves != (err == nil) || err != nil && fault.From(err) == nil {
				t.Fatalf("from %+v under %d to %+v under %d: %v", model, token, to, by, err)
			}
			if err == nil {
				model, token = to, by
			}
			all, err := store.List(t.Context(), key.Log)
			if err != nil || len(all) != 1 || all[0].Position != model || all[0].Token != token {
				t.Fatalf("%+v (%v), want %+v under %d", all, err, model, token)
			}
		}
	})
}

// large maps a byte to a number of which some are at the bounds of an int64.
func large(b byte) uint64 {
	switch b {
	case 255:
		return math.MaxUint64
	case 254:
		return math.MaxInt64
	case 253:
		return math.MaxInt64 + 1
	}
	return uint64(b)
}

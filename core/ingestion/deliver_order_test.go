package ingestion_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// keyed is a sink that accepts several batches at a time and stores each event once,
// by uuid. Random batches fail before and after they are stored, in part, and for
// good.
type keyed struct {
	fakeSink
	rnd    *rand.Rand
	busy   map[string]int // events of a distinct id in calls at the moment
	seen   map[[16]byte]bool
	byID   map[string][]string
	clash  string
	most   int
	now    int
	unruly bool
}

// lay appends events to the journal, in requests of three with unique ids.
func lay(tb testing.TB, j journal.Journal, historical bool, items ...string) {
	tb.Helper()
	for part := range slices.Chunk(items, 3) {
		rec := ingestiontest.Record("[" + strings.Join(part, ",") + "]")
		rec.Historical = historical
		binary.BigEndian.PutUint64(rec.RequestID[:], puts.Add(1)<<16|0xfefe)
		if _, err := j.Append(context.Background(), rec.Append(nil)); err != nil {
			tb.Fatal(err)
		}
	}
}

var puts atomic.Uint64

// numbered returns events named by their numbers, of a few distinct ids.
func numbered(from, to int) (items []string) {
	for i := from; i < to; i++ {
		items = append(items, fmt.Sprintf(`{"event":"%d","distinct_id":"u%d"}`, i, i%11))
	}
	return items
}

func newKeyed(seed uint64) *keyed {
	s := &keyed{rnd: rand.New(rand.NewPCG(seed, 1)), busy: map[string]int{}, seen: map[[16]byte]bool{}, byID: map[string][]string{}, unruly: true}
	s.name, s.props = "keyed", sdk.SinkProperties{MaxInFlight: 8, MaxEvents: 7, Ordering: sdk.OrderPerKey}
	return s
}

func (s *keyed) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	events, err := b.Events()
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	mine := map[string]bool{}
	for _, e := range events {
		mine[e.DistinctID] = true
	}
	for id := range mine {
		if s.busy[id]++; s.busy[id] > 1 {
			s.clash = id
		}
	}
	dice, pause := s.rnd.IntN(10), time.Duration(s.rnd.IntN(3))*time.Millisecond
	s.mu.Unlock()
	time.Sleep(pause) // so that calls overlap
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	for id := range mine {
		s.busy[id]--
	}
	if !s.unruly {
		dice = 9
	}
	switch dice {
	case 0:
		return sdk.WriteResult{}, errors.New("nobody knows")
	case 1:
		return rejects(sdk.ClassTransient)(b)
	case 2:
		return rejects(sdk.ClassInternal)(b)
	case 3:
		return sdk.WriteResult{}, nil
	}
	for i, e := range events {
		if !s.seen[b.Records[i].UUID] {
			s.seen[b.Records[i].UUID] = true
			s.byID[e.DistinctID] = append(s.byID[e.DistinctID], e.Name)
		}
	}
	if dice == 4 { // stored, and the answer is lost
		return sdk.WriteResult{}, errors.New("nobody knows")
	}
	return b.Committed(), nil
}

func TestDeliverKeepsTheOrderOfEachDistinctIDWithManyInFlight(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			rnd := rand.New(rand.NewPCG(seed, 2))
			want, n := map[string][]string{}, 600
			var all []string
			for i := range n {
				id := fmt.Sprint("u", rnd.IntN(1+rnd.IntN(40)))
				want[id] = append(want[id], fmt.Sprint(i))
				all = append(all, fmt.Sprintf(`{"event":"%d","distinct_id":"%s"}`, i, id))
			}
			lay(t, j, false, all...)
			s := newKeyed(seed)
			del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
			eventually(t, "a part", func() bool { return committed(t, j, "sink/keyed").Count > 100 })
			stopDeliver(t, del)
			startDeliver(t, deliverConfig(), j, d, newSinks(s))
			eventually(t, "everything", func() bool { return committed(t, j, "sink/keyed").Count == uint64(n) })
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.clash != "" {
				t.Errorf("events of %s were in two batches at once", s.clash)
			}
			if s.most < 2 {
				t.Errorf("never more than %d batch at once", s.most)
			}
			for id, names := range want {
				if fmt.Sprint(s.byID[id]) != fmt.Sprint(names) {
					t.Errorf("%s: got %v, want %v", id, s.byID[id], names)
				}
			}
		})
	}
}

func TestDeliverTotalOrderIsOneAtATime(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	lay(t, j, false, numbered(0, 100)...)
	s := newKeyed(1)
	s.props.Ordering = sdk.OrderTotal
	startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "everything", func() bool { return committed(t, j, "sink/keyed").Count == 100 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most != 1 {
		t.Errorf("%d at once", s.most)
	}
}

// The sink throttles until few batches are in flight, and then accepts all.
func TestDeliverWindowFollowsTheSink(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	lay(t, j, false, numbered(0, 400)...)
	var mu sync.Mutex
	overrun := true
	s := &fakeSink{name: "one", props: sdk.SinkProperties{MaxInFlight: 16, MaxEvents: 1}}
	s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
		mu.Lock()
		defer mu.Unlock()
		if overrun {
			return rejects(sdk.ClassThrottled)(b)
		}
		return b.Committed(), nil
	}
	cfg := deliverConfig()
	cfg.Deliver.MaxInFlight = 16
	del := startDeliver(t, cfg, j, d, newSinks(s))
	window := func() int {
		status, err := del.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status[0].Window
	}
	eventually(t, "one at a time", func() bool { return window() == 1 && len(s.sent()) > 16 })
	mu.Lock()
	overrun = false
	mu.Unlock()
	eventually(t, "everything", func() bool { return committed(t, j, "sink/one").Count == 400 })
	eventually(t, "the window is back", func() bool { return window() == 16 })
}

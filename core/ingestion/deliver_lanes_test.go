package ingestion_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

func readers(tb testing.TB, j journal.Journal) (names []string) {
	tb.Helper()
	stats, err := j.Stats(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range stats.Readers {
		names = append(names, r.Name)
	}
	return names
}

// A large import before the live events, and a slow sink.
func TestDeliverImportsDoNotDelayLiveEvents(t *testing.T) {
	t.Parallel()
	for _, ordering := range []sdk.Ordering{sdk.OrderNone, sdk.OrderPerKey, sdk.OrderTotal} {
		t.Run(fmt.Sprint("order ", ordering), func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			lay(t, j, true, numbered(1000, 1600)...)
			lay(t, j, false, numbered(0, 60)...)
			s := &fakeSink{name: "one", props: sdk.SinkProperties{MaxEvents: 10, MaxInFlight: 4, Ordering: ordering}}
			// The sink is slow, so that the import lasts longer than the live events.
			s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
				time.Sleep(20 * time.Millisecond)
				return b.Committed(), nil
			}
			del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
			eventually(t, "everything", func() bool { return len(strings.Fields(s.has())) == 660 })
			kept := strings.Fields(s.has())
			live, imported := 0, 0
			for _, name := range kept {
				if n, _ := strconv.Atoi(name); n >= 1000 {
					imported++
				} else if live++; live == 60 {
					break
				}
			}
			// One batch of the import for four of what happens now, and those
			// that were there first.
			if imported > 400 {
				t.Errorf("%d events of the import went before what happens now", imported)
			}
			slices.Sort(kept)
			if len(slices.Compact(kept)) != 660 {
				t.Error("something came twice")
			}
			lay(t, j, false, numbered(60, 70)...)
			eventually(t, "the place of the import is given up", func() bool { return fmt.Sprint(readers(t, j)) == "[sink/one]" })
			eventually(t, "the place counts all", func() bool { return committed(t, j, "sink/one").Count >= 670 })
			status, err := del.Status(t.Context())
			if err != nil || status[0].Historical != nil {
				t.Errorf("status %+v, %v", status, err)
			}
		})
	}
}

// Stops in the middle of an import, under failures, lose no event, and no sequence
// number is given to two events that were both confirmed before the stop.
func TestDeliverImportsOverRestarts(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	s := newKeyed(7)
	total := 0
	for round := range 5 {
		lay(t, j, true, numbered(1000*round+100, 1000*round+200)...)
		lay(t, j, false, numbered(1000*round, 1000*round+50)...)
		total += 150
		del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "a part", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.seen) > total-100 })
		stopDeliver(t, del)
	}
	startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "everything", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.seen) == total })
	lay(t, j, false, numbered(9000, 9001)...)
	eventually(t, "the place of the import is given up", func() bool { return fmt.Sprint(readers(t, j)) == "[sink/keyed]" })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clash != "" {
		t.Errorf("events of %s were in two batches at once", s.clash)
	}
}

// Sequence numbers and watermarks of both readers are in one series.
func TestDeliverImportsToASinkThatStages(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	s := newStager()
	lay(t, j, true, numbered(100, 130)...)
	lay(t, j, false, numbered(0, 30)...)
	startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "everything", func() bool { return len(strings.Fields(s.has())) == 60 })
	last := uint64(0)
	for _, b := range s.sent() {
		if b.FirstSeq <= last {
			t.Errorf("batch %d to %d behind %d", b.FirstSeq, b.LastSeq, last)
		}
		last = b.LastSeq
	}
}

func TestDeliverCrashes(t *testing.T) {
	t.Parallel()
	died := &sdk.Error{Class: sdk.ClassTransient, Code: "plugin_unavailable", Message: "signal: killed"}
	cases := []struct {
		name    string
		poison  []string
		times   int // it crashes; 0 is always
		letters string
		most    int // crashes
	}{
		{"one event is found with few restarts", []string{"77"}, 0, "77", 5},
		{"a crash that does not come again blames nobody", []string{"77"}, 1, "", 1},
		{"the first and the last", []string{"0", "149"}, 0, "0 149", 10},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			lay(t, j, false, numbered(0, 150)...)
			var mu sync.Mutex
			crashes := 0
			s := &fakeSink{name: "one", props: sdk.SinkProperties{MaxEvents: 100}}
			s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
				mu.Lock()
				defer mu.Unlock()
				if slices.ContainsFunc(eventNames(b), func(n string) bool { return slices.Contains(c.poison, n) }) && (c.times == 0 || crashes < c.times) {
					crashes++
					return sdk.WriteResult{}, died
				}
				return b.Committed(), nil
			}
			startDeliver(t, deliverConfig(), j, d, newSinks(s))
			eventually(t, "the end", func() bool { return committed(t, j, "sink/one").Count == 150 })
			if got := letters(t, d); got != c.letters {
				t.Errorf("dead letters %q, want %q", got, c.letters)
			}
			mu.Lock()
			defer mu.Unlock()
			if crashes > c.most {
				t.Errorf("%d crashes, want at most %d", crashes, c.most)
			}
			if n := len(strings.Fields(s.has())); n != 150-len(strings.Fields(c.letters)) {
				t.Errorf("%d events", n)
			}
		})
	}
}

// No event becomes a dead letter because a plugin is down for long, or crashes with
// every batch.
func TestDeliverKeepsEventsWhileThePluginIsDown(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"plugin_not_running", "plugin_unavailable"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			lay(t, j, false, numbered(0, 30)...)
			s := &fakeSink{name: "one"}
			well := false
			s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
				if !well {
					return sdk.WriteResult{}, &sdk.Error{Class: sdk.ClassTransient, Code: code, Message: "gone"}
				}
				return b.Committed(), nil
			}
			startDeliver(t, deliverConfig(), j, d, newSinks(s))
			eventually(t, "many tries", func() bool { return len(s.sent()) > 60 })
			s.mu.Lock()
			well = true
			s.mu.Unlock()
			eventually(t, "the end", func() bool { return committed(t, j, "sink/one").Count == 30 })
			// A few may be set aside before it shows that it is not they.
			if n := len(strings.Fields(letters(t, d))); code == "plugin_not_running" && n > 0 || n > 3 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

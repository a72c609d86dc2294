package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/journal"
)

func readBack(t *testing.T, k *kit) {
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	want := [][]byte{
		[]byte("{}"), {}, {0}, []byte("ein Käse \u0000 \xff\xfe"),
		bytes.Repeat([]byte("a"), 3<<20), noise, noise[:100_000], []byte("last"),
	}
	begun := time.Now().Add(-time.Second)
	for _, data := range want {
		_, err := k.Append(ctx(t), data)
		must(t, err)
	}
	got := k.all(t)
	equal(t, "records", len(got), len(want))
	equal(t, "the first number", got[0].Seq, 1)
	for i, r := range got {
		if !bytes.Equal(r.Data, want[i]) {
			t.Errorf("record %d: got %d bytes that differ from the %d appended", r.Seq, len(r.Data), len(want[i]))
		}
		if r.At.Before(begun) || r.At.After(time.Now().Add(time.Second)) {
			t.Errorf("record %d: appended at %v", r.Seq, r.At)
		}
	}
}

func appendCopies(t *testing.T, k *kit) {
	data := []byte("kept")
	_, err := k.Append(ctx(t), data)
	must(t, err)
	copy(data, "lost")
	equal(t, "record", string(k.all(t)[0].Data), "kept")
	k.reopen(t)
	equal(t, "record after reopening", string(k.all(t)[0].Data), "kept")
}

func readCopies(t *testing.T, k *kit) {
	k.fill(t, 3)
	for _, r := range k.all(t) {
		for i := range r.Data {
			r.Data[i] = 'x'
		}
		_ = append(r.Data, "over the edge"...)
	}
	for i, r := range k.all(t) {
		equal(t, "record", string(r.Data), fmt.Sprint(i))
	}
}

func readLimits(t *testing.T, k *kit) {
	for _, size := range []int{10, 10, 1000, 10, 10} {
		k.append(t, strings.Repeat("a", size))
	}
	for _, c := range []struct {
		name                       string
		after                      uint64
		maxRecords, maxBytes, want int
	}{
		{"as many as asked for", 0, 2, 1 << 20, 2},
		{"as many bytes as asked for", 0, 100, 25, 2},
		{"one that is larger than asked for", 2, 100, 25, 1},
		{"one when none was asked for", 0, 0, 0, 1},
		{"what is left", 3, 100, 1 << 20, 2},
		{"all", 0, 100, 1 << 20, 5},
	} {
		records := k.read(t, c.after, c.maxRecords, c.maxBytes)
		if len(records) != c.want {
			t.Errorf("%s: got %d records, want %d", c.name, len(records), c.want)
		}
		if len(records) > 0 && records[0].Seq != c.after+1 {
			t.Errorf("%s: starts at %d, want %d", c.name, records[0].Seq, c.after+1)
		}
	}
}

func readAfterEnd(t *testing.T, k *kit) {
	equal(t, "records of an empty journal", len(k.read(t, 0, 10, 1000)), 0)
	last := k.fill(t, 1)
	for _, after := range []uint64{last, last + 1, 1 << 62, 1<<64 - 1} {
		equal(t, fmt.Sprintf("records after %d", after), len(k.read(t, after, 10, 1000)), 0)
	}
}

func manyProducers(t *testing.T, k *kit) {
	const producers, each = 16, 25
	var mu sync.Mutex
	bySeq := map[uint64]string{}
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				data := fmt.Sprintf("%d/%d", p, i)
				seq, err := k.Append(ctx(t), []byte(data))
				mu.Lock()
				if other, ok := bySeq[seq]; err != nil || ok {
					t.Errorf("append %s: number %d (of %q as well), error %v", data, seq, other, err)
				}
				bySeq[seq] = data
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	records := k.all(t)
	equal(t, "records", len(records), producers*each)
	before := uint64(0)
	for _, r := range records {
		equal(t, fmt.Sprintf("record %d", r.Seq), string(r.Data), bySeq[r.Seq])
		if r.Seq <= before {
			t.Fatalf("record %d comes after %d", r.Seq, before)
		}
		before = r.Seq
	}
}

func producerOrder(t *testing.T, k *kit) {
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			before := uint64(0)
			for i := range 25 {
				seq, err := k.Append(ctx(t), fmt.Appendf(nil, "%d/%d", p, i))
				if err != nil || seq <= before {
					t.Errorf("append %d of producer %d: number %d after %d, error %v", i, p, seq, before, err)
				}
				before = seq
			}
		})
	}
	wg.Wait()
}

func timeOrder(t *testing.T, k *kit) {
	k.fill(t, 20)
	k.reopen(t)
	k.fill(t, 20)
	records := k.all(t)
	for i := 1; i < len(records); i++ {
		if records[i].At.Before(records[i-1].At) {
			t.Fatalf("record %d is older than %d", records[i].Seq, records[i-1].Seq)
		}
	}
}

func endedContext(t *testing.T, k *kit) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Append(ended, []byte("never")); !errors.Is(err, context.Canceled) {
		t.Fatalf("append: got %v, want context.Canceled", err)
	}
	if _, err := k.Read(ended, 0, 1, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("read: got %v, want context.Canceled", err)
	}
	equal(t, "records", len(k.all(t)), 0)
}

func waitForRecord(t *testing.T, k *kit) {
	last := k.fill(t, 1)
	must(t, k.Wait(ctx(t), last-1))
	came := make(chan error, 3)
	for range cap(came) {
		go func() { came <- k.Wait(ctx(t), last) }()
	}
	k.append(t, "news")
	for range cap(came) {
		must(t, <-came)
	}
	equal(t, "records", len(k.read(t, last, 10, 1000)), 1)
}

func waitEnds(t *testing.T, k *kit) {
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := k.Wait(short, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want context.DeadlineExceeded", err)
	}
}

func reopen(t *testing.T, k *kit) {
	id := k.stats(t).ID
	for round := range 3 {
		k.fill(t, 10)
		k.reopen(t)
		records := k.all(t)
		equal(t, "records", len(records), 10*(round+1))
		for i, r := range records {
			equal(t, "record", string(r.Data), fmt.Sprint(i%10))
		}
	}
	equal(t, "identity", k.stats(t).ID, id)
}

func everything(t *testing.T, k *kit) {
	const producers, each, readers = 8, 40, 3
	var work sync.WaitGroup
	for p := range producers {
		work.Go(func() {
			for i := range each {
				if _, err := k.Append(ctx(t), fmt.Appendf(nil, "%d/%d", p, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for r := range readers {
		name := fmt.Sprint("reader ", r)
		p := k.register(t, name, journal.Begin)
		work.Go(func() { follow(t, k, name, p, producers*each) })
	}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := k.Trim(ctx(t)); err != nil {
				t.Error(err)
			}
			if _, err := k.Stats(ctx(t)); err != nil {
				t.Error(err)
			}
		}
	})
	work.Wait()
	close(stop)
	busy.Wait()
	for _, r := range k.stats(t).Readers {
		equal(t, r.Name+" has seen", r.Position.Count, producers*each)
		equal(t, r.Name+" lags", r.Lag, 0)
	}
}

// follow reads until it has seen want records, committing as it goes.
func follow(t *testing.T, k *kit, name string, p journal.Position, want uint64) {
	for p.Count < want {
		if err := k.Wait(ctx(t), p.Seq); err != nil {
			t.Error(err)
			return
		}
		records, err := k.Read(ctx(t), p.Seq, 7, 1<<20)
		if err != nil {
			t.Error(err)
			return
		}
		for _, r := range records {
			if r.Seq <= p.Seq {
				t.Errorf("%s: record %d after %d", name, r.Seq, p.Seq)
			}
			p = journal.Position{Seq: r.Seq, Count: p.Count + 1}
		}
		if err := k.Commit(ctx(t), name, p); err != nil {
			t.Error(err)
			return
		}
	}
}

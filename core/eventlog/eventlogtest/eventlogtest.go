// Package eventlogtest tests the contract of eventlog.Log.
//
// Every implementation must pass Run. The tests use only the interface; each
// implementation tests its own failures itself.
package eventlogtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// Log is how Run makes the logs of an implementation.
type Log struct {
	// New returns a function that opens one log, and opens it again after it was closed.
	New func(t *testing.T) (open func(t *testing.T) eventlog.Log)

	// Trim removes the records of all partitions that every reader has done. The log must
	// not keep others, and must not trim by itself within a minute.
	Trim func(t *testing.T, log eventlog.Log)

	// Tokens is false for a log of one node, which ignores them.
	Tokens bool
}

// Run checks an implementation.
func Run(t *testing.T, l Log) {
	tests := []struct {
		name string
		test func(t *testing.T, k *kit)
	}{
		{"appended records are read back in their order", order},
		{"concurrent appends lose and repeat nothing", concurrent},
		{"records belong to their callers", copies},
		{"a read keeps to its limits but gives at least one record", limits},
		{"a read after the end is empty and no error", readAfterEnd},
		{"everything is there after reopening", reopen},
		{"an ended context appends nothing", endedContext},
		{"wait returns when a record comes", waits},
		{"a closed log refuses everything", closed},
		{"a new reader begins at the begin or at the end", starts},
		{"a reader begins in all partitions without a lease", registersAll},
		{"a cursor moves forwards only and not beyond the end", commits},
		{"a cursor is kept over reopening", cursorSurvives},
		{"trim removes what all readers have done", trims},
		{"stats describe the records and the readers", stats},
		{"stats know a record as soon as its append returns", statsAfterAppend},
	}
	if l.Tokens {
		tests = append(tests, []struct {
			name string
			test func(t *testing.T, k *kit)
		}{
			{"a higher token takes a partition over in the middle of a read", takeover},
			{"readers begin at the oldest record before the first owner", startsBeforeOwner},
			{"a commit with a lower token is refused and its records come again", redelivery},
		}...)
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := &kit{Log: l, open: l.New(t)}
			k.log = k.open(t)
			t.Cleanup(func() { _ = k.log.Close(context.Background()) })
			c.test(t, k)
		})
	}
}

// kit is a log with helpers for tests.
type kit struct {
	Log
	open func(t *testing.T) eventlog.Log
	log  eventlog.Log
}

func (k *kit) reopen(t *testing.T) {
	t.Helper()
	must(t, k.log.Close(ctx(t)))
	k.log = k.open(t)
}

func (k *kit) append(t *testing.T, partition int, texts ...string) {
	t.Helper()
	for _, text := range texts {
		must(t, k.log.Append(ctx(t), []eventlog.Part{{Partition: partition, Data: []byte(text)}}))
	}
}

// last is the highest partition of the log: another one than 0, if there are more.
func (k *kit) last() int { return k.log.Partitions() - 1 }

// read reads records until there are n, waiting for them.
func read(t *testing.T, p eventlog.Partition, after uint64, n int) (records []journal.Record) {
	t.Helper()
	c := ctx(t)
	for len(records) < n {
		must(t, p.Wait(c, after))
		some, err := p.Read(c, after, n-len(records), 1<<20)
		must(t, err)
		for _, r := range some {
			if r.Seq <= after {
				t.Fatalf("record %d comes after %d", r.Seq, after)
			}
			after = r.Seq
		}
		records = append(records, some...)
	}
	return records
}

func texts(records []journal.Record) (out []string) {
	for _, r := range records {
		out = append(out, string(r.Data))
	}
	return out
}

// numbers returns the texts "0", "1", … of n records.
func numbers(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func order(t *testing.T, k *kit) {
	noise := bytes.Repeat([]byte{0, 0xff, 'a'}, 300_000)
	for p := range k.log.Partitions() {
		k.append(t, p, numbers(20)...)
		k.append(t, p, string(noise), "")
	}
	for p := range k.log.Partitions() {
		records := read(t, k.log.Partition(p, 1), 0, 22)
		equal(t, "texts", fmt.Sprint(texts(records[:20])), fmt.Sprint(numbers(20)))
		equal(t, "noise is kept", string(records[20].Data) == string(noise), true)
		equal(t, "length of an empty record", len(records[21].Data), 0)
		if age := time.Since(records[0].At); age > patience || age < -time.Minute {
			t.Errorf("appended at %v", records[0].At)
		}
	}
}

func concurrent(t *testing.T, k *kit) {
	const producers, each = 8, 25
	n := k.log.Partitions()
	var work sync.WaitGroup
	for producer := range producers {
		work.Go(func() {
			for i := range each {
				parts := make([]eventlog.Part, n)
				for p := range n {
					parts[p] = eventlog.Part{Partition: p, Data: fmt.Appendf(nil, "%d %d", producer, i)}
				}
				if err := k.log.Append(ctx(t), parts); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for p := range n {
		next := [producers]int{}
		for _, r := range read(t, k.log.Partition(p, 1), 0, producers*each) {
			var producer, i int
			if _, err := fmt.Sscan(string(r.Data), &producer, &i); err != nil {
				t.Fatal(err)
			}
			if i != next[producer] {
				t.Fatalf("partition %d: record %d of producer %d comes when %d is next", p, i, producer, next[producer])
			}
			next[producer]++
		}
	}
	work.Wait()
}

func copies(t *testing.T, k *kit) {
	data := []byte("kept")
	must(t, k.log.Append(ctx(t), []eventlog.Part{{Data: data}}))
	copy(data, "lost")
	k.append(t, 0, "next")
	p := k.log.Partition(0, 1)
	for range 2 {
		records := read(t, p, 0, 2)
		equal(t, "record", string(records[0].Data), "kept")
		copy(records[0].Data, "xxxx")
		_ = append(records[0].Data, "over the edge"...)
		equal(t, "the next record", string(records[1].Data), "next")
	}
	k.reopen(t)
	equal(t, "record after reopening", string(read(t, k.log.Partition(0, 1), 0, 1)[0].Data), "kept")
}

func limits(t *testing.T, k *kit) {
	for _, size := range []int{10, 10, 1000, 10, 10} {
		k.append(t, 0, string(make([]byte, size)))
	}
	p := k.log.Partition(0, 1)
	first := read(t, p, 0, 5)
	for _, c := range []struct{ after, maxRecords, maxBytes, want int }{
		{0, 2, 1 << 20, 2}, {0, 100, 25, 2}, {2, 100, 25, 1}, {0, 0, 0, 1}, {3, 100, 1 << 20, 2}, {0, 100, 1 << 20, 5},
	} {
		after := uint64(0)
		if c.after > 0 {
			after = first[c.after-1].Seq
		}
		records, err := p.Read(ctx(t), after, c.maxRecords, c.maxBytes)
		must(t, err)
		equal(t, fmt.Sprintf("records of %+v", c), len(records), c.want)
		equal(t, "the first", records[0].Seq, first[c.after].Seq)
	}
}

func readAfterEnd(t *testing.T, k *kit) {
	p := k.log.Partition(0, 1)
	records, err := p.Read(ctx(t), 0, 10, 1000)
	must(t, err)
	equal(t, "records of an empty log", len(records), 0)
	k.append(t, 0, "one")
	last := read(t, p, 0, 1)[0].Seq
	for _, after := range []uint64{last, last + 1, 1 << 62, 1<<64 - 1} {
		records, err := p.Read(ctx(t), after, 10, 1000)
		must(t, err)
		equal(t, fmt.Sprintf("records after %d", after), len(records), 0)
	}
}

func reopen(t *testing.T, k *kit) {
	for round := range 3 {
		k.append(t, k.last(), numbers(10)...)
		k.reopen(t)
		records := read(t, k.log.Partition(k.last(), 1), 0, 10*(round+1))
		for i, r := range records {
			equal(t, "record", string(r.Data), fmt.Sprint(i%10))
		}
	}
}

func endedContext(t *testing.T, k *kit) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := k.log.Append(ended, []eventlog.Part{{Data: []byte("never")}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("append: got %v, want context.Canceled", err)
	}
	p := k.log.Partition(0, 1)
	if _, err := p.Read(ended, 0, 1, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("read: got %v, want context.Canceled", err)
	}
	k.append(t, 0, "first")
	equal(t, "the first record", string(read(t, p, 0, 1)[0].Data), "first")
}

func waits(t *testing.T, k *kit) {
	p := k.log.Partition(k.last(), 1)
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := p.Wait(short, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want context.DeadlineExceeded", err)
	}
	came := make(chan error, 3)
	c := ctx(t)
	for range cap(came) {
		go func() { came <- p.Wait(c, 0) }()
	}
	k.append(t, k.last(), "news")
	for range cap(came) {
		must(t, <-came)
	}
	records := read(t, p, 0, 1)
	equal(t, "record", string(records[0].Data), "news")
}

func closed(t *testing.T, k *kit) {
	p := k.log.Partition(0, 1)
	ended := make(chan error, 1)
	c := ctx(t)
	go func() { ended <- p.Wait(c, 0) }()
	must(t, k.log.Close(ctx(t)))
	must(t, k.log.Close(ctx(t)))
	if err := <-ended; err == nil {
		t.Error("a closed log does not end its waiters")
	}
	err := k.log.Append(ctx(t), []eventlog.Part{{Data: []byte("late")}})
	equal(t, "kind of a late append", fault.KindOf(err), fault.Unavailable)
	_, err = p.Read(ctx(t), 0, 1, 1)
	equal(t, "kind of a late read", fault.KindOf(err), fault.Unavailable)
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

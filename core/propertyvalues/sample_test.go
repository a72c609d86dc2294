package propertyvalues

import (
	"testing"
	"time"
)

// Reads of large events have few of them, reads of small ones grow to pageSize, and all of
// them end at maxSample.
func TestReadsFollowTheSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ bytes, largest, total int }{{100, pageSize, maxSample}, {pageBytes / 100, 100, maxSample}, {1 << 20, firstPage, maxSample}, {4 << 20, firstPage, maxSample}} {
		p := newSampleSize(time.Now().Add(time.Hour))
		largest := 0
		for !p.done {
			n := p.limit
			largest = max(largest, n)
			for range n {
				if !p.add(c.bytes) {
					t.Fatal("no time")
				}
			}
			p.end(n, false)
			if c.bytes*p.limit > pageBytes && p.limit > 1 {
				t.Fatalf("events of %d bytes: the next read has %d", c.bytes, p.limit)
			}
		}
		if largest != c.largest || p.total != c.total {
			t.Errorf("events of %d bytes: at most %d of a read, %d in all; want %d and %d", c.bytes, largest, p.total, c.largest, c.total)
		}
	}
}

// The time ends a read before all of it is counted, but not the first one.
func TestTimeOfASample(t *testing.T) {
	t.Parallel()
	p := newSampleSize(time.Now().Add(-time.Second))
	for range firstPage {
		if !p.add(1) {
			t.Fatal("the first read is not counted")
		}
	}
	if p.end(firstPage, false); !p.done || p.add(1) {
		t.Error("the time does not end the sample")
	}
	p = newSampleSize(time.Now().Add(time.Hour))
	if p.end(3, true); !p.done {
		t.Error("the last read does not end the sample")
	}
}

package sqlitepages

import (
	"bytes"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // the driver
)

func (a *arena) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inUse
}

func TestPagesOfSQLiteAreInSlots(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=cache_size(-4096)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	before := pages.count()
	for _, query := range []string{
		"CREATE TABLE t (v BLOB)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 2000) INSERT INTO t SELECT zeroblob(3000) FROM n",
		"SELECT sum(length(v)) FROM t",
	} {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	// 4 MiB of cache, of which SQLite may take a few pages from a first allocation
	if n := pages.count() - before; n < 800 || n > 1100 {
		t.Errorf("a cache of 1,024 pages has %d slots", n)
	}
	var sum int
	if err := db.QueryRow("SELECT sum(length(v)) FROM t").Scan(&sum); err != nil || sum != 6_000_000 {
		t.Errorf("read %d bytes: %v", sum, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := pages.count() - before; n != 0 {
		t.Errorf("%d slots are in use after the file was closed", n)
	}
}

func TestAllocationsKeepTheirContent(t *testing.T) {
	tls := libc.NewTLS()
	defer tls.Close()
	p := xMalloc(tls, 4368)
	if !pages.owns(p) || xSize(tls, p) < 4368 {
		t.Fatalf("an allocation of the size of a page is not in a slot, or has %d bytes", xSize(tls, p))
	}
	copy(raw(p, 4368), bytes.Repeat([]byte{7}, 4368))
	q := xRealloc(tls, p, 9000)
	if pages.owns(q) || !bytes.Equal(raw(q, 4368), bytes.Repeat([]byte{7}, 4368)) {
		t.Error("an allocation that grew lost its content")
	}
	q = xRealloc(tls, q, 100)
	if !bytes.Equal(raw(q, 100), bytes.Repeat([]byte{7}, 100)) {
		t.Error("an allocation that shrank lost its content")
	}
	xFree(tls, q)
	for _, n := range []int32{16, 4096, slotBytes + 1} {
		p := xMalloc(tls, n)
		if pages.owns(p) {
			t.Errorf("an allocation of %d bytes is in a slot", n)
		}
		xFree(tls, p)
	}
}

// raw returns n bytes at p.
func raw(p uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(p)), n) }

func TestSlotsAreReusedFromTheFront(t *testing.T) {
	discarded := map[uintptr]int{}
	a := arena{reserve: reserve, discard: func(p uintptr, n int) { discarded[p] += n }}
	var all []uintptr
	for range 2*slots + 1 {
		all = append(all, a.alloc())
	}
	seen := map[uintptr]bool{}
	for _, p := range all {
		if seen[p] || !a.owns(p) || !a.owns(p+slotBytes-1) {
			t.Fatal("a slot was given twice or lies outside of the range")
		}
		seen[p] = true
	}
	a.release(all[5])
	a.release(all[slots+1])
	if a.alloc() != all[5] || a.alloc() != all[slots+1] {
		t.Error("the first free slots are not used first")
	}
	a.release(all[2*slots])
	if len(discarded) != 1 || discarded[all[2*slots]] != 1<<chunkBits {
		t.Errorf("returned %v, not the chunk without pages", discarded)
	}
	if a.alloc() != all[2*slots] {
		t.Error("a returned chunk is not used again")
	}
}

func TestAFullRangeUsesTheOtherAllocator(t *testing.T) {
	a := arena{reserve: reserve, discard: discard}
	for range maxChunks * slots {
		if a.alloc() == 0 {
			t.Fatal("the range is full too early")
		}
	}
	if p := a.alloc(); p != 0 {
		t.Error("a slot behind the range")
	}
	tried := 0
	a = arena{reserve: func(int) (uintptr, error) { tried++; return 0, errors.ErrUnsupported }}
	for range 2 {
		if a.alloc() != 0 {
			t.Error("a slot without a range")
		}
	}
	if tried != 1 || a.owns(4096) {
		t.Errorf("%d attempts to reserve a range", tried)
	}
}

func TestSlotsAreSafeForConcurrentUse(t *testing.T) {
	a := arena{reserve: reserve, discard: discard}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for range 200 {
				var mine []uintptr
				for range 300 {
					p := a.alloc()
					raw(p, slotBytes)[100] = byte(n)
					mine = append(mine, p)
				}
				for _, p := range mine {
					if raw(p, slotBytes)[100] != byte(n) {
						t.Error("two goroutines have one slot")
					}
					a.release(p)
				}
			}
		})
	}
	all.Wait()
	if a.inUse != 0 {
		t.Errorf("%d slots in use", a.inUse)
	}
}

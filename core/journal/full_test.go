package journal_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// smallDisk is a disk that a test can fill and free again.
type smallDisk struct {
	dir   string
	hooks journal.Hooks
	fill  func(t *testing.T)
	free  func(t *testing.T)
}

// newSmallDisk is a real file system of 64 MiB where this process may mount
// one; elsewhere the file is forbidden to grow, which SQLite reports the same
// way.
func newSmallDisk(t *testing.T) smallDisk {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Logf("no disk of its own (%v): the file is limited instead", err)
		return limitedFile(dir)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	return smallDisk{
		dir: dir,
		fill: func(t *testing.T) {
			var st unix.Statfs_t
			if err := unix.Statfs(dir, &st); err != nil {
				t.Fatal(err)
			}
			free := int64(st.Bavail) * st.Bsize
			if err := os.WriteFile(filler, make([]byte, free-2<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		free: func(t *testing.T) {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func limitedFile(dir string) smallDisk {
	var limited atomic.Bool
	return smallDisk{
		dir: dir,
		hooks: journal.Hooks{Link: func(c *sql.Conn) {
			if limited.Load() {
				_, _ = c.ExecContext(context.Background(), "PRAGMA max_page_count = 200")
			}
		}},
		fill: func(*testing.T) { limited.Store(true) },
		free: func(*testing.T) { limited.Store(false) },
	}
}

// acked remembers what was acknowledged and what was refused, by content.
type acked map[uint64][]byte

// noise is a record of 6 kB that cannot be compressed and begins with n.
func noise(n int) []byte {
	data := make([]byte, 6000)
	_, _ = rand.Read(data)
	binary.LittleEndian.PutUint64(data, uint64(n))
	return data
}

// check reads the whole journal: every acknowledged record must be there once
// and unchanged, and nothing else.
func (a acked) check(t *testing.T, j journal.Journal) {
	t.Helper()
	seen := 0
	each(t, j, func(r journal.Record) {
		seen++
		if string(a[r.Seq]) != string(r.Data) {
			t.Fatalf("record %d is not what was acknowledged", r.Seq)
		}
	})
	if seen != len(a) {
		t.Fatalf("%d records are there, %d were acknowledged", seen, len(a))
	}
}

// each calls f with every record that is kept.
func each(t testing.TB, j journal.Journal, f func(journal.Record)) {
	t.Helper()
	for after := uint64(0); ; {
		records, err := j.Read(context.Background(), after, 1000, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 {
			return
		}
		for _, r := range records {
			if r.Seq <= after {
				t.Fatalf("record %d comes after %d", r.Seq, after)
			}
			after = r.Seq
			f(r)
		}
	}
}

func TestFullDisk(t *testing.T) {
	disk := newSmallDisk(t)
	j := open(t, testConfig(), disk.dir, disk.hooks)
	ctx := context.Background()
	if _, err := j.Register(ctx, "reader", journal.Begin); err != nil {
		t.Fatal(err)
	}
	known := acked{}
	add := func(n int) error {
		data := noise(n)
		seq, err := j.Append(ctx, data)
		if err == nil {
			known[seq] = data
		}
		return err
	}
	for n := range 50 {
		if err := add(n); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		disk.fill(t)
		if disk.hooks.Link != nil { // the limit takes hold on a new connection
			if err := j.Close(ctx); err != nil {
				t.Fatal(err)
			}
			j = open(t, testConfig(), disk.dir, disk.hooks)
		}
		var err error
		for n := 0; err == nil && n < 10_000; n++ {
			err = add(n)
		}
		f := fault.From(err)
		if f == nil || f.Kind != fault.Unavailable || f.Code != "journal_full" || f.RetryAfter <= 0 {
			t.Fatalf("round %d: got %v, want Unavailable journal_full with a time to come back", round, err)
		}
		known.check(t, j) // reading goes on
		if s, err := j.Stats(ctx); err != nil || s.Broken == nil {
			t.Fatalf("round %d: stats say nothing is wrong (%v)", round, err)
		}
		disk.free(t)
		eventually(t, "appends are taken again", func() bool { return add(-1) == nil })
		for n := range 50 {
			if err := add(n); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		known.check(t, j)
	}
	if err := j.Close(ctx); err != nil {
		t.Fatal(err)
	}
	known.check(t, open(t, testConfig(), disk.dir, disk.hooks))
}

// space is a disk whose free bytes a test sets.
type space struct{ free atomic.Int64 }

func (s *space) hook(string) (free, size int64, err error) { return s.free.Load(), 100 << 30, nil }

func code(err error) string {
	if f := fault.From(err); f != nil {
		return f.Code
	}
	return fmt.Sprint(err)
}

func TestGuardKeepsSpaceFree(t *testing.T) {
	t.Parallel()
	var disk space
	disk.free.Store(2 << 30)
	cfg := testConfig()
	cfg.MinFreeBytes = 1 << 30
	j := open(t, cfg, t.TempDir(), journal.Hooks{Space: disk.hook})
	ctx := context.Background()
	if _, err := j.Register(ctx, "reader", journal.Begin); err != nil {
		t.Fatal(err)
	}
	appendOne := func() string {
		_, err := j.Append(ctx, []byte("record"))
		return code(err)
	}
	if got := appendOne(); got != "<nil>" {
		t.Fatal(got)
	}
	disk.free.Store(1<<30 - 1)
	eventually(t, "the guard refuses", func() bool { return appendOne() == "journal_full" })
	if err := j.Commit(ctx, "reader", journal.Position{Seq: 1}); err != nil {
		t.Errorf("a cursor must still move: %v", err)
	}
	if _, err := j.Trim(ctx); err != nil {
		t.Errorf("retention must still work: %v", err)
	}
	disk.free.Store(1 << 30)
	eventually(t, "the guard takes appends again", func() bool { return appendOne() == "<nil>" })
}

func TestGuardIsASmallPartOfASmallDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		free, size int64
		want       string
	}{
		{"a large disk: min_free_bytes counts", 900 << 20, 1000 << 30, "journal_full"},
		{"a small disk: min_free_percent counts", 900 << 20, 10 << 30, "<nil>"},
		{"a small disk that is full", 400 << 20, 10 << 30, "journal_full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			cfg.MinFreeBytes, cfg.MinFreePercent = 1<<30, 5
			j := open(t, cfg, t.TempDir(), journal.Hooks{Space: func(string) (int64, int64, error) { return c.free, c.size, nil }})
			if _, err := j.Append(context.Background(), nil); code(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// A backlog that filled the disk leaves free pages in the file when it is
// gone. They are room for new records although the disk shows none.
func TestRoomWithinTheFileCounts(t *testing.T) {
	t.Parallel()
	var disk space
	disk.free.Store(10 << 20)
	cfg := testConfig()
	cfg.MaxBytes, cfg.MinFreeBytes = 1, 2<<20
	j := open(t, cfg, t.TempDir(), journal.Hooks{Space: disk.hook})
	ctx := context.Background()
	if _, err := j.Register(ctx, "reader", journal.Begin); err != nil {
		t.Fatal(err)
	}
	var last uint64
	for range 60 {
		data := make([]byte, 60_000)
		_, _ = rand.Read(data)
		var err error
		if last, err = j.Append(ctx, data); err != nil {
			t.Fatal(err)
		}
	}
	disk.free.Store(1 << 20)
	appendOne := func() string {
		_, err := j.Append(ctx, []byte("record"))
		return code(err)
	}
	eventually(t, "the guard refuses", func() bool { return appendOne() == "journal_full" })
	if err := j.Commit(ctx, "reader", journal.Position{Seq: last}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Trim(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the guard takes appends again", func() bool { return appendOne() == "<nil>" })

	// Appends use the free space up, which the journal notices while nothing else happens to the file.
	taken := 0
	eventually(t, "the guard refuses when the space in the file is used", func() bool {
		data := make([]byte, 60_000)
		_, _ = rand.Read(data)
		_, err := j.Append(ctx, data)
		if err == nil {
			taken++
		}
		return code(err) == "journal_full"
	})
	if taken < 20 || taken > 60 {
		t.Errorf("%d records of 60 kB were taken, want about as many as the file had free space for", taken)
	}
}

func TestLimitBytesRefuses(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.LimitBytes, cfg.MaxBytes = 100_000, 1
	cfg.TrimInterval = time.Millisecond
	j := open(t, cfg, t.TempDir(), journal.Hooks{})
	ctx := context.Background()
	if _, err := j.Register(ctx, "reader", journal.Begin); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	eventually(t, "the limit refuses", func() bool {
		seq, err := j.Append(ctx, make([]byte, 1000))
		last = max(last, seq)
		return code(err) == "journal_full"
	})
	if err := j.Commit(ctx, "reader", journal.Position{Seq: last}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "appends are taken when the reader has caught up", func() bool {
		_, err := j.Append(ctx, nil)
		return err == nil
	})
}

package powercut_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/guidonhq/guidon/core/powercut"
)

func TestMain(m *testing.M) {
	powercut.ServeDisk()
	os.Exit(m.Run())
}

func newDisk(t *testing.T) (disk *powercut.Disk, dir string) {
	t.Helper()
	dir = t.TempDir()
	disk, err := powercut.Mount(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return disk, dir
}

func write(t *testing.T, path string, offset int64, data []byte, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, offset); err != nil {
		t.Fatal(err)
	}
	if !sync {
		return
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, disk *powercut.Disk, seed int) {
	t.Helper()
	if err := disk.Cut(uint64(seed)); err != nil {
		t.Fatal(err)
	}
}

// TestSyncedContentStays tests that a cut takes away nothing that was synced.
func TestSyncedContentStays(t *testing.T) {
	disk, dir := newDisk(t)
	path := filepath.Join(dir, "file")
	var want []byte
	for round := range 20 {
		want = append(want, bytes.Repeat([]byte{byte('a' + round)}, 700)...)
		copy(want, []byte{byte('A' + round)})
		write(t, path, 0, want, true)
		write(t, path+".lost", 0, want, false)
		cut(t, disk, round)
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("round %d: %d bytes of %d, %v", round, len(got), len(want), err)
		}
	}
}

// TestUnsyncedContentIsLostOrTorn tests each kind of loss: old, torn and new pages,
// shorter files, and changes of metadata.
func TestUnsyncedContentIsLostOrTorn(t *testing.T) {
	disk, dir := newDisk(t)
	path := filepath.Join(dir, "file")
	old, fresh := bytes.Repeat([]byte("o"), 4096), bytes.Repeat([]byte("n"), 4096)
	seen := map[string]int{}
	for round := range 60 {
		write(t, path, 0, old, true)
		write(t, path, 0, fresh, false)
		write(t, path, 4096, fresh, false)
		cut(t, disk, round)
		got, err := os.ReadFile(path)
		if err != nil || len(got) < 4096 {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		switch page := got[:4096]; {
		case bytes.Equal(page, old):
			seen["old"]++
		case bytes.Equal(page, fresh):
			seen["new"]++
		default:
			seen["torn"]++
		}
		switch len(got) {
		case 4096:
			seen["shortened"]++
		case 8192:
			seen["grown"]++
		default:
			seen["partly grown"]++
		}
		if err := os.Truncate(path, 4096); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"old", "new", "torn", "shortened", "grown", "partly grown"} {
		if seen[kind] == 0 {
			t.Errorf("no %s content in 60 cuts: %v", kind, seen)
		}
	}
}

// TestUnsyncedNames tests that files which were made, removed, renamed and shortened
// may come back, whole, and in the order of the changes.
func TestUnsyncedNames(t *testing.T) {
	disk, dir := newDisk(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	content := bytes.Repeat([]byte("content"), 1000)
	seen := map[string]int{}
	for round := range 40 {
		for _, name := range []string{"removed", "replaced", "shortened"} {
			write(t, at(name), 0, content, true)
		}
		write(t, at("new"), 0, []byte("new"), true)
		must(t, os.Remove(at("removed")))
		must(t, os.Rename(at("new"), at("replaced")))
		must(t, os.Truncate(at("shortened"), 10))
		cut(t, disk, round)
		steps := 0
		if _, err := os.Stat(at("removed")); os.IsNotExist(err) {
			steps++
		}
		if got, _ := os.ReadFile(at("replaced")); string(got) == "new" {
			steps++
		} else if len(got) != 0 && !bytes.Equal(got, content) {
			t.Fatalf("the replaced file has %d bytes", len(got))
		}
		if got, _ := os.ReadFile(at("shortened")); len(got) == 10 {
			steps++
		} else if !bytes.Equal(got, content) {
			t.Fatalf("the shortened file has %d bytes", len(got))
		}
		seen[string(rune('0'+steps))]++
		for _, name := range []string{"removed", "replaced", "shortened", "new"} {
			_ = os.Remove(at(name))
		}
		must(t, disk.Sync())
	}
	if len(seen) != 4 {
		t.Errorf("changes made durable before the cut, and how often: %v; want 0 to 3 of 3", seen)
	}
}

// TestSyncOfDirectory tests that an fsync of the directory makes a removal and a
// renaming durable.
func TestSyncOfDirectory(t *testing.T) {
	disk, dir := newDisk(t)
	removed, from, to := filepath.Join(dir, "removed"), filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for round := range 10 {
		write(t, removed, 0, []byte("x"), true)
		write(t, from, 0, []byte("y"), true)
		must(t, os.Remove(removed))
		must(t, os.Rename(from, to))
		syncDirectory(t, dir)
		cut(t, disk, round)
		if _, err := os.Stat(removed); !os.IsNotExist(err) {
			t.Fatalf("a removed file is back: %v", err)
		}
		if got, err := os.ReadFile(to); err != nil || string(got) != "y" {
			t.Fatalf("the renamed file: %q, %v", got, err)
		}
	}
}

func syncDirectory(t *testing.T, dir string) {
	t.Helper()
	d, err := os.Open(dir)
	must(t, err)
	defer d.Close()
	must(t, d.Sync())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

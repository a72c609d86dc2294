package main_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/guidonhq/guidon/core/powercut"
)

// TestPowerCut is TestKillUnderLoad on a disk that forgets a random part of what was
// not synced: database, journal and the file of the sink are on it. It needs /dev/fuse
// and the right to mount. POWERCUT_ROUNDS sets the number of rounds (make
// powercut: 20; 0, the default, skips the test), POWERCUT_SEED what is lost.
func TestPowerCut(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("POWERCUT_ROUNDS"))
	if rounds == 0 {
		t.Skip("make powercut runs this test")
	}
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("POWERCUT_SEED"), 10, 64); err == nil {
		seed = n
	}
	dir := t.TempDir()
	disk, err := powercut.Mount(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s := newServerIn(t, dir)
	if err := disk.Sync(); err != nil {
		t.Fatal(err)
	}
	cuts := uint64(0)
	s.cut = func() {
		until(t, noProcess(t))
		if err := disk.Cut(seed<<32 + cuts); err != nil {
			t.Fatal(err)
		}
		cuts++
	}
	crashRounds(t, s, rounds)
	t.Logf("lost in %d power cuts (seed %d): %+v", cuts, seed, disk.Losses())
	if losses := disk.Losses(); losses.OldPages+losses.TornPages == 0 || losses.Bytes == 0 {
		t.Error("the disk lost nothing: the test proves nothing")
	}
}

func serveDisk() { powercut.ServeDisk() }

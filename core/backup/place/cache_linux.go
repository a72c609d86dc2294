package place

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache removes the pages of a synced file from the page cache.
func dropCache(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

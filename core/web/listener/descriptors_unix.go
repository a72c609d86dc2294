//go:build unix

package listener

import "syscall"

// maxReserved is the most descriptors that are kept for everything but
// connections: the journal, the database, plugins, files.
const maxReserved = 512

// MaxByDescriptors returns the number of connections for which the process has
// descriptors, and the number of files that it may open. It keeps up to half of
// them for everything else. The Go runtime has raised the soft limit to the hard
// one.
func MaxByDescriptors() (connections, files int) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 30, 1 << 30
	}
	files = int(min(uint64(limit.Cur), 1<<30)) //nolint:unconvert // the type differs between systems
	return max(1, files-min(files/2, maxReserved)), files
}

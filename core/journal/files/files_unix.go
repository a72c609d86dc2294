//go:build unix

package files

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// FileLock is a lock that is held.
type FileLock struct{ file *os.File }

// Close releases the lock. To close the file is not enough: a process that is being
// started has a copy of it until it runs its program, and would hold the lock meanwhile.
func (l *FileLock) Close() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}

// Lock takes the exclusive lock that keeps a second process (or a second
// journal of this one) away. The kernel drops it when the process dies. It fails
// with ErrLocked when another one holds it.
func Lock(path string) (*FileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer func() { _ = f.Close() }()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w%s; one journal belongs to one process", ErrLocked, holder(f))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid()) // for a person who wonders
	}
	return &FileLock{f}, nil
}

// holder is " by process N" when the lock's owner wrote its number.
func holder(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	if pid := strings.TrimSpace(string(text[:n])); pid != "" {
		return " by process " + pid
	}
	return ""
}

// Space returns what an ordinary user may still write to the disk of path, and
// how large that disk is.
func Space(path string) (free, size int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	block := int64(st.Bsize) //nolint:unconvert // its type differs between systems
	return int64(st.Bavail) * block, int64(st.Blocks) * block, nil
}

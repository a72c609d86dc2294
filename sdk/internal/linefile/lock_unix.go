//go:build unix && !solaris && !aix

package linefile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock waits for the exclusive lock of a file. It does nothing on a file system without
// locks.
func lock(f *os.File) (unlock func() error, err error) {
	for {
		switch err = unix.Flock(int(f.Fd()), unix.LOCK_EX); {
		case err == nil:
			return func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }, nil
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
			return func() error { return nil }, nil
		case !errors.Is(err, unix.EINTR):
			return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}

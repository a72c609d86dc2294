//go:build unix

package logcheck

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// SQLite locks these bytes of a file: every connection in WAL mode holds a read
// lock on one of them.
const (
	sqlitePendingByte = 0x40000000
	sqliteLockBytes   = 512
)

// lockSQLite takes SQLite's exclusive lock of a file until f is closed. It
// returns false if another process has the file open.
func lockSQLite(f *os.File) (free bool, err error) {
	err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{
		Type: unix.F_WRLCK, Whence: io.SeekStart, Start: sqlitePendingByte, Len: sqliteLockBytes,
	})
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EAGAIN) {
		return false, nil
	}
	return err == nil, err
}

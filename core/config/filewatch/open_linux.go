package filewatch

import (
	"os"

	"golang.org/x/sys/unix"
)

// isOpenForWriting reports whether a process has the file open for writing. The kernel
// grants a read lease only if none has. A file of another owner or a file system
// without leases reports false.
func isOpenForWriting(f *os.File) bool {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return err == unix.EAGAIN
}

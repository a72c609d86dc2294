//go:build unix

package sdk

import (
	"os"

	"golang.org/x/sys/unix"
)

// claimStdout moves the pipe to the host to another descriptor and points
// descriptor 1 at standard error, so that a C library, a child process or a
// runtime that writes there directly is heard as log too. It changes nothing
// when it cannot.
func claimStdout() {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return
	}
	if err := unix.Dup2(2, 1); err != nil {
		_ = unix.Close(fd)
		return
	}
	handshakePipe = os.NewFile(uintptr(fd), "handshake")
}

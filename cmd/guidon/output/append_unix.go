//go:build unix

package output

import (
	"os"

	"golang.org/x/sys/unix"
)

// Append makes the writes to files go to their ends, as those of a shell's >> do. Another
// process, such as the sink stdout, may append to the same file: without it the next write
// of this process lands on what the other one has written. Pipes and terminals do not
// change.
func Append(files ...*os.File) {
	for _, f := range files {
		if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags|unix.O_APPEND)
		}
	}
}

//go:build unix

package servermetrics

import "golang.org/x/sys/unix"

// diskSpace returns the bytes that an unprivileged process may still use, and all bytes.
func diskSpace(directory string) (free, size float64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(directory, &s); err != nil {
		return 0, 0, err
	}
	block := float64(s.Bsize)
	return float64(s.Bavail) * block, float64(s.Blocks) * block, nil
}

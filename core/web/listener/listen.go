package listener

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"
)

// UnixPrefix marks an address as the path of a Unix socket.
const UnixPrefix = "unix:"

// Listen listens on host:port, or on unix:/path. Only the user of the process
// can connect to the socket. A socket file that no process listens on is
// replaced.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, UnixPrefix)
	if !unix {
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The file is created with at most 0755: only its owner can connect.
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// removeStale removes the socket file of a process that was killed.
func removeStale(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // Listen reports every problem but a missing file
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s exists and is no socket", path)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = c.Close()
		return nil // Listen fails: the address is in use
	}
	return os.Remove(path)
}

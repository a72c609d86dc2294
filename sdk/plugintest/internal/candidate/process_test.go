package candidate

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAProcessThatEndedInTimeIsNotReportedWhenTheCaseComesLate(t *testing.T) {
	t.Parallel()
	p := &Process{exited: make(chan struct{})}
	close(p.exited)
	for range 1000 {
		if !p.Ends(-time.Second) {
			t.Fatal("a process that has ended is reported as running")
		}
	}
}

// A plugin must listen on a socket in the directory that it was given: the server refuses
// any other address.
func TestHandshakeAddress(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(dir, "p"), filepath.Join(outside, "p")} {
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
	}
	if err := os.Symlink(filepath.Join(outside, "p"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, accepted := range map[string]bool{
		"unix|" + filepath.Join(dir, "p"):                      true,
		"unix|" + filepath.Join(outside, "p"):                  false,
		"unix|" + dir + "/../" + filepath.Base(outside) + "/p": false,
		"unix|" + filepath.Join(dir, "link"):                   false,
		"unix|" + filepath.Join(dir, "file"):                   false,
		"unix|" + filepath.Join(dir, "nothing"):                false,
		"unix|":                                                false,
		"tcp|127.0.0.1:22":                                     false,
		"tcp|" + dir + "/p":                                    false,
	} {
		err := new(Process).handshake("1|1|"+address+"|grpc|\n", dir)
		if accepted && err != nil || !accepted && (err == nil || !strings.Contains(err.Error(), "which is no socket in PLUGIN_UNIX_SOCKET_DIR")) {
			t.Errorf("%s: %v, accepted should be %v", address, err, accepted)
		}
	}
}

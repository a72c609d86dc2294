package process_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/settings"
)

// launch runs a shell script as a plugin and returns the error of the start.
func launch(t *testing.T, script string, o process.Options) error {
	t.Helper()
	o.Argv, o.SocketDir = []string{"/bin/sh", "-c", script}, t.TempDir()
	return launchError(t, o)
}

// launchError starts a process that is no plugin and returns the error.
func launchError(t *testing.T, o process.Options) error {
	t.Helper()
	o.StartTimeout, o.Env = time.Minute, append(o.Env, "PATH="+os.Getenv("PATH"))
	o.Logs = process.NewLogPipe(zap.NewNop(), 100, func(string, int) {})
	launched, err := process.Launch(t.Context(), o)
	if err == nil {
		t.Cleanup(launched.Release)
		t.Fatal("a shell script has completed the handshake")
	}
	return err
}

func TestHandshakeNamesOnlyTheSocketOfTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, err := net.Listen("unix", filepath.Join(dir, "other.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	for name, address := range map[string]string{
		"a socket elsewhere":   "unix|" + other.Addr().String(),
		"a path that climbs":   "unix|$PLUGIN_UNIX_SOCKET_DIR/../../" + filepath.Base(dir) + "/other.sock",
		"a link":               "unix|$PLUGIN_UNIX_SOCKET_DIR/link",
		"a file":               "unix|$PLUGIN_UNIX_SOCKET_DIR/file",
		"TCP on this machine":  "tcp|" + tcp.Addr().String(),
		"TCP on another one":   "tcp|192.0.2.1:22",
		"an abstract socket":   "unix|@guidon",
		"nothing":              "unix|",
		"the directory itself": "unix|$PLUGIN_UNIX_SOCKET_DIR",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := `ln -s ` + other.Addr().String() + ` "$PLUGIN_UNIX_SOCKET_DIR/link"; : >"$PLUGIN_UNIX_SOCKET_DIR/file"; echo "1|1|` + address + `|grpc|"; sleep 60`
			if err := launch(t, script, process.Options{}); !strings.Contains(err.Error(), "the handshake names") {
				t.Error(err)
			}
		})
	}
}

func TestProcessIsNiced(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "nice")
	// The priority is set after the start: wait for it.
	script := `i=0; while [ "$(nice)" != 7 ] && [ $i -lt 6000 ]; do sleep 0.01; i=$((i+1)); done; nice >` + out
	_ = launch(t, script, process.Options{Limits: settings.Limits{Nice: 7}})
	if text, err := os.ReadFile(out); err != nil || strings.TrimSpace(string(text)) != "7" {
		t.Errorf("nice %s, %v", text, err)
	}
}

func TestProcessWithoutNetwork(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "routes")
	err := launch(t, "cat /proc/net/dev >"+out, process.Options{Network: settings.NetworkNone})
	text, readErr := os.ReadFile(out)
	if readErr != nil {
		t.Fatalf("%v; %v", err, readErr)
	}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) != "lo" {
			t.Errorf("the process sees the interface %s", name)
		}
	}
}

// TestHideMemory runs this test again as an ordinary user, whose second process
// looks at the memory of the first.
func TestHideMemory(t *testing.T) {
	const variable, secret = "GUIDON_TEST_HIDE", "GUIDON_TEST_SECRET=hunter2"
	switch os.Getenv(variable) {
	case "":
		cmd := exec.Command(readable(t), "-test.run=^TestHideMemory$")
		cmd.Env = []string{variable + "=1", secret}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	default:
		look := func() string {
			out, _ := exec.Command("/bin/cat", fmt.Sprintf("/proc/%d/environ", os.Getpid())).Output()
			return string(out)
		}
		if !strings.Contains(look(), secret) {
			t.Fatal("another process reads no environment before")
		}
		if err := process.HideMemory(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(look(), secret) {
			t.Error("another process reads the environment")
		}
		if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
			t.Errorf("dumpable %d, %v", dumpable, err)
		}
		out := filepath.Join(t.TempDir(), "interfaces") // a start without a network works still
		if err := launch(t, "/bin/cat /proc/net/dev >"+out, process.Options{Network: settings.NetworkNone}); err != nil {
			if text, _ := os.ReadFile(out); len(text) == 0 && !strings.Contains(err.Error(), "not permitted") {
				t.Error(err)
			}
		}
	}
}

// readable returns a copy of this test that every user can run.
func readable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "guidon-hide-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "test")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

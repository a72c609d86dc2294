package host_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// alone is a plugin process without our host: what the SDK does by itself.
type alone struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	done  chan error
}

func standalone(t *testing.T, env ...string) *alone {
	t.Helper()
	argv := bundled("chatty")
	a := &alone{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan error, 1)}
	a.cmd.Env = append(env, "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR="+t.TempDir())
	var err error
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.out = bufio.NewReader(out)
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.cmd.Process.Kill() })
	line, err := a.out.ReadString('\n')
	if err != nil || strings.Count(line, "|") < 5 {
		t.Fatalf("handshake %q, %v", line, err)
	}
	go func() {
		rest, _ := io.ReadAll(a.out)
		if len(rest) > 0 {
			t.Errorf("more on standard output: %q", rest)
		}
		a.done <- a.cmd.Wait()
	}()
	return a
}

func (a *alone) ends(t *testing.T, within time.Duration, code int) {
	t.Helper()
	select {
	case <-a.done:
		if got := a.cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("exit code %d, want %d", got, code)
		}
	case <-time.After(within):
		t.Errorf("alive after %s", within)
	}
}

const cookie = sdk.CookieKey + "=" + sdk.CookieValue

func TestPluginEndsWhenStandardInputCloses(t *testing.T) {
	t.Parallel()
	a := standalone(t, cookie, sdk.WatchKey+"=stdin")
	if err := a.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	a.ends(t, patience, 3)
}

func TestPluginIgnoresInterrupt(t *testing.T) {
	t.Parallel()
	a := standalone(t, cookie, sdk.WatchKey+"=stdin")
	for range 3 {
		kill(t, a.cmd.Process.Pid, syscall.SIGINT)
	}
	select {
	case err := <-a.done:
		t.Errorf("it ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestPluginEndsWhenItsParentChanges(t *testing.T) {
	t.Parallel()
	// A shell starts the plugin and ends; its standard input stays open.
	argv := bundled("probe")
	cmd := exec.Command("/bin/sh", "-c", argv[0]+" plugin exec probe </dev/null & read x; echo $!")
	cmd.Env = []string{cookie, "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR=" + t.TempDir()}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || strings.Count(line, "|") < 5 {
		t.Fatalf("handshake %q, %v", line, err)
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if alive(pid) {
			return "alive"
		}
		return ""
	})
	_ = cmd.Wait()
}

func TestPluginStartedByHandPrintsUsage(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "plugin", "exec", "file")
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "file 1.0.0 is a Guidon plugin") {
		t.Errorf("%v: %s", err, out)
	}
}

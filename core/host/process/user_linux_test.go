package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/guidonhq/guidon/core/host/process"
)

// otherIDs are the ids of a user other than root.
const otherIDs = "65534:65534"

// otherUser returns a user and a directory for its sockets.
func otherUser(t *testing.T) (*process.User, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root starts processes as another user")
	}
	user, err := process.FindUser(otherIDs)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := process.NewRunDir("", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dirs.Remove(); err != nil {
			t.Error(err)
		}
	})
	sockets, err := dirs.PathFor(user)
	if err != nil {
		t.Fatal(err)
	}
	return user, sockets
}

// asUser runs a script as the other user and returns the first line that it prints.
func asUser(t *testing.T, script string, env ...string) string {
	t.Helper()
	user, sockets := otherUser(t)
	return launchOutput(t, process.Options{User: user, Env: env, Argv: []string{"/bin/sh", "-c", script}, SocketDir: sockets})
}

// launchOutput returns the first line that a process prints, which is no handshake.
func launchOutput(t *testing.T, o process.Options) string {
	t.Helper()
	_, line, found := strings.Cut(launchError(t, o).Error(), "printed before the handshake: \"")
	if !found {
		return ""
	}
	line, _, _ = strings.Cut(line, "\" (")
	return line
}

func TestProcessRunsAsItsUser(t *testing.T) {
	t.Parallel()
	if got := asUser(t, `echo "$(id -u) $(id -g) $(id -G)"`); got != "65534 65534 65534" {
		t.Errorf("ids %q", got)
	}
	if got := asUser(t, `: >"$PLUGIN_UNIX_SOCKET_DIR/file" && ls "$PLUGIN_UNIX_SOCKET_DIR"`); got != "file" {
		t.Errorf("its directory has %q", got)
	}
	if got := asUser(t, `ls "$(dirname "$PLUGIN_UNIX_SOCKET_DIR")" 2>&1 | head -c 10; echo`); !strings.HasPrefix(got, "ls:") {
		t.Errorf("it lists the directories of other processes: %q", got)
	}
	if got := asUser(t, `echo "tmp ${TMPDIR:-none}"`, "TMPDIR="+t.TempDir()); got != "tmp none" {
		t.Errorf("the directory of temporary files cannot be written: %q", got)
	}
	if got := asUser(t, `echo "tmp ${TMPDIR:-none}"`, "TMPDIR=/tmp"); got != "tmp /tmp" {
		t.Errorf("%q", got)
	}
}

func TestProcessOfAnotherUserReachesNothingOfTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "guidon.db"), []byte("persons"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{
		"reads the data directory":        "cat " + filepath.Join(dir, "guidon.db"),
		"lists the data directory":        "ls " + dir,
		"writes to the data directory":    ": >" + filepath.Join(dir, "new"),
		"signals the server":              fmt.Sprintf("kill -0 %d", os.Getpid()),
		"reads the environment":           fmt.Sprintf("cat /proc/%d/environ", os.Getpid()),
		"opens the memory":                fmt.Sprintf(": </proc/%d/mem", os.Getpid()),
		"lists the descriptors":           fmt.Sprintf("ls /proc/%d/fd", os.Getpid()),
		"becomes root again":              "nice -n -5 true 2>&1 | grep -q ermission && false",
		"changes the executable it runs":  ": >>/proc/self/fd/3",
		"removes the directory of others": "rm -r \"$(dirname \"$PLUGIN_UNIX_SOCKET_DIR\")\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := asUser(t, "if ("+command+") >/dev/null 2>&1; then echo yes; else echo no; fi"); got != "no" {
				t.Errorf("%q", got)
			}
		})
	}
}

// The copy of an executable is in a directory that the user cannot reach, also when it is
// a script, which its interpreter opens.
func TestExecutableOutOfReachRuns(t *testing.T) {
	t.Parallel()
	user, sockets := otherUser(t)
	source, data := filepath.Join(t.TempDir(), "plugin"), t.TempDir()
	if err := os.WriteFile(source, []byte("#!/bin/sh\necho \"script of $(id -u)\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	copied, err := process.NewVerifiedCopies(data).DevCopy(source)
	if err != nil {
		t.Fatal(err)
	}
	if got := launchOutput(t, process.Options{User: user, Argv: []string{copied}, SocketDir: sockets}); got != "script of 65534" {
		t.Errorf("a script: %q", got)
	}
	err = launchError(t, process.Options{User: user, Argv: []string{source}, SocketDir: sockets})
	if !strings.Contains(err.Error(), "user "+otherIDs+" may not read and execute "+source) {
		t.Errorf("an executable of root alone: %v", err)
	}
}

func TestUsersAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"no-such-user-here": "has no user", "1:2:3": "want a name, a number or uid:gid", "a:b": "want a name, a number or uid:gid",
		"4294967295:0": "want a name", "-1:0": "want a name", "3999999999": "needs its group",
		"4294967296": "has no user", "4294967297": "has no user", "-4294967295": "has no user",
	} {
		if _, err := process.FindUser(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if u, err := process.FindUser(fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())); u != nil || err != nil {
		t.Errorf("the own user: %v %v", u, err)
	}
}

// TestOnlyRootChangesTheUser runs this test again as an ordinary user.
func TestOnlyRootChangesTheUser(t *testing.T) {
	const variable = "GUIDON_TEST_USER"
	if os.Getenv(variable) == "" && os.Geteuid() == 0 {
		cmd := exec.Command(readable(t), "-test.run=^TestOnlyRootChangesTheUser$")
		cmd.Env = []string{variable + "=1"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if _, err := process.FindUser("1:1"); err == nil || !strings.Contains(err.Error(), "only a server that runs as root") {
		t.Error(err)
	}
	if _, err := process.FindUser("0:0"); err == nil || !strings.Contains(err.Error(), "must not be root") {
		t.Error(err)
	}
}

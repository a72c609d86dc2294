package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readyServer is the line of a server for tests.
type readyServer struct {
	URL         string `json:"url"`
	AdminURL    string `json:"admin_url"`
	PersonalKey string `json:"personal_key"`
	Projects    []struct {
		ID        int64
		Name, Key string
	}
}

// startEphemeral runs guidon serve with args until the end of the test. It returns the
// ready file and the directory for temporary files.
func startEphemeral(t *testing.T, args ...string) (ready readyServer, tmp string, cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	tmp = t.TempDir()
	file := filepath.Join(t.TempDir(), "ready.json")
	cmd = exec.Command(bin, append([]string{"serve", "--address", "127.0.0.1:0", "--ready-file", file}, args...)...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "TMPDIR="+tmp)
	out = &bytes.Buffer{}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	until(t, func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		if err := json.Unmarshal(text, &ready); err != nil {
			t.Fatal(err)
		}
		return ""
	})
	return ready, tmp, cmd, out
}

// TestExamplesOfTheCIGuidePass runs the tests of docs/ci.md in each language against a
// server with their seed file.
func TestExamplesOfTheCIGuidePass(t *testing.T) {
	longTest(t)
	needCommand(t, "python3", "python3")
	needCommand(t, "node", "nodejs")
	t.Parallel()
	seed, err := filepath.Abs("../../examples/ci/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ready, _, _, _ := startEphemeral(t, "--ephemeral", "--seed", seed)
	for _, line := range [][]string{
		{"go", "test", "-count=1", "./examples/ci/flags_test.go"}, {"node", "--test", "examples/ci/flags.test.mjs"}, {"python3", "examples/ci/test_flags.py"},
	} {
		test := exec.Command(line[0], line[1:]...)
		test.Dir, test.Env = "../..", append(os.Environ(), "GUIDON_URL="+ready.URL)
		if output, err := test.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", line, err, output)
		}
	}
}

// TestEphemeralServer checks that the server has the content of the seed file when its
// line appears, and that a stop leaves nothing.
func TestEphemeralServer(t *testing.T) {
	t.Parallel()
	seed, err := filepath.Abs("../../examples/ci/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ready, tmp, cmd, out := startEphemeral(t, "--ephemeral", "--seed", seed)
	if ready.PersonalKey != "phx_ci_personal_key_of_tests" || len(ready.Projects) != 1 || ready.Projects[0].Key != "phc_ci_shop" || ready.AdminURL == "" {
		t.Errorf("ready %+v", ready)
	}
	s := &server{url: ready.URL}
	for id, want := range map[string]bool{"ada": true, "linus": false} { // without a wait
		var answer struct {
			Flags map[string]struct{ Enabled bool }
		}
		s.postJSON(t, "/flags/?v=2", `{"api_key":"phc_ci_shop","distinct_id":"`+id+`"}`, &answer)
		if len(answer.Flags) != 5 || answer.Flags["invited"].Enabled != want {
			t.Errorf("flags of %s: %+v", id, answer.Flags)
		}
	}
	if dirs, _ := filepath.Glob(filepath.Join(tmp, "guidon-ephemeral-*")); len(dirs) != 1 {
		t.Errorf("data in %q", dirs)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != 1 || !json.Valid(out.Bytes()) {
		t.Errorf("standard output is %q", out)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "guidon-ephemeral-*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestSignalSentTwice checks that a server whose process and process group both receive
// the signal, as timeout sends it, stops in order and removes its directory.
func TestSignalSentTwice(t *testing.T) {
	t.Parallel()
	_, tmp, cmd, _ := startEphemeral(t, "--ephemeral")
	for range 5 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "guidon-ephemeral-*")); err != nil || len(left) > 0 {
		t.Errorf("left in the directory for temporary files: %v %v", left, err)
	}
}

// TestEphemeralKeys checks the keys of the command line without a seed file.
func TestEphemeralKeys(t *testing.T) {
	t.Parallel()
	ready, _, _, _ := startEphemeral(t, "--ephemeral", "--project-key", "phc_of_the_test", "--personal-key", "phx_of_the_test")
	if ready.PersonalKey != "phx_of_the_test" || len(ready.Projects) != 1 || ready.Projects[0].Key != "phc_of_the_test" {
		t.Errorf("ready %+v", ready)
	}
}

// TestInvalidSeedFile checks that an invalid seed file ends the start with its line and
// leaves nothing.
func TestInvalidSeedFile(t *testing.T) {
	t.Parallel()
	dir, tmp := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "seed.yaml"), "projects:\n- name: Shop\n  flags:\n  - key: a\n    filter: {}\n")
	cmd := exec.Command(bin, "serve", "--ephemeral", "--seed", "seed.yaml", "--address", "127.0.0.1:0")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+tmp)
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), `seed.yaml:5: unknown key "filter" in a flag; did you mean "filters"?`) {
		t.Errorf("%v: %s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "guidon-ephemeral-*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestSeedFlagsOfTheGuide checks that docs/ci.md names flags that exist.
func TestSeedFlagsOfTheGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command(bin, "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("(?m)`(--[a-z-]+)").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(string(help), name[1]) {
			t.Errorf("docs/ci.md names %s, which guidon serve does not have", name[1])
		}
	}
}

//go:build e2e

package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// run runs a command in a directory, which must succeed.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, tail(out, 8000))
	}
	return string(out)
}

// packageDir is the Python package of plugins in the checkout.
func packageDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPythonPackage runs the type checker, the linter and the tests of the package.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	venv := filepath.Join(install(t, "plugin-python"), "venv", "bin")
	dir := packageDir(t)
	run(t, dir, filepath.Join(venv, "mypy"), "--cache-dir", t.TempDir())
	run(t, dir, filepath.Join(venv, "ruff"), "check", "--no-cache", ".")
	run(t, dir, filepath.Join(venv, "ruff"), "format", "--no-cache", "--check", ".")
	for _, tests := range []string{"tests", "examples"} {
		run(t, dir, filepath.Join(venv, "python"), "-B", "-m", "unittest", "discover", "-s", tests)
	}
}

// pythonExample makes an executable of an example: the script with the interpreter of
// the virtual environment in its first line.
func pythonExample(t *testing.T, name string) string {
	t.Helper()
	venv := filepath.Join(install(t, "plugin-python"), "venv", "bin")
	source, err := os.ReadFile(filepath.Join(packageDir(t), "examples", name+".py"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, append([]byte("#!"+filepath.Join(venv, "python")+"\n"), source...), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// conforms judges a plugin with the conformance kit.
func conforms(t *testing.T, plugin, config string, arguments ...string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := append([]string{binary(t), "plugin", "test", plugin, "--config", "config.json"}, arguments...)
	if out := run(t, dir, command...); !strings.Contains(out, " 0 failed") {
		t.Errorf("the report:\n%s", out)
	}
}

// TestPythonPlugins judges the examples of the Python package: grpcio requires and
// verifies the certificate of the host.
func TestPythonPlugins(t *testing.T) {
	t.Parallel()
	t.Run("sink", func(t *testing.T) {
		conforms(t, pythonExample(t, "lines"), `{"path": "events.ndjson"}`, "--observe", "cat events.ndjson")
	})
	t.Run("notifier", func(t *testing.T) {
		url, count := chat(t)
		conforms(t, pythonExample(t, "chat"), `{"url": "`+url+`"}`, "--messages", "cat "+count, "--control", "<!channel>")
	})
	t.Run("matcher", func(t *testing.T) {
		conforms(t, pythonExample(t, "hours"), `{}`)
	})
}

// chat is an incoming webhook. The file holds the number of its messages.
func chat(t *testing.T) (url, count string) {
	t.Helper()
	count = filepath.Join(t.TempDir(), "count")
	if err := os.WriteFile(count, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // orders the numbers in the file
	posts := 0
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		posts++
		_ = os.WriteFile(count, fmt.Append(nil, posts), 0o600)
	}))
	t.Cleanup(s.Close)
	return s.URL, count
}

// delivered starts a server with the sink as an instance, captures events and waits
// until all are in the file that the sink appends to.
func delivered(t *testing.T, plugin string) {
	t.Helper()
	file, err := os.ReadFile(plugin)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	out := filepath.Join(t.TempDir(), "out.ndjson")
	s := startWith(t, fmt.Sprintf("    - name: other\n      kind: sink\n      use: %s\n      sha256: %s\n      config:\n        path: %s\n",
		plugin, hex.EncodeToString(sum[:]), out))
	const events = 200
	for i := range events {
		body := fmt.Sprintf(`{"api_key":%q,"event":"e%d","distinct_id":"ada"}`, s.project, i)
		if err := s.status(http.MethodPost, "/capture/", strings.NewReader(body), http.StatusOK); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, "the sink has all events", func() error {
		text, err := os.ReadFile(out)
		if n := bytes.Count(text, []byte("\n")); n != events {
			return errors.Join(fmt.Errorf("%d of %d events", n, events), err)
		}
		return nil
	})
}

// TestPythonSinkUnderServer delivers events to a Python sink.
func TestPythonSinkUnderServer(t *testing.T) {
	longTest(t)
	delivered(t, pythonExample(t, "lines"))
}

// TestNewPythonPlugins runs make test in the plugins that plugin new writes: their tests
// and the conformance kit. pytest runs the same tests, and a wrong plugin fails them.
func TestNewPythonPlugins(t *testing.T) {
	longTest(t)
	t.Parallel()
	venv := filepath.Join(install(t, "plugin-python"), "venv")
	for kind, change := range map[string][2]string{
		"sink": {"batch.ndjson()", "batch.ndjson().upper()"}, "notifier": {"html.escape(", "str("}, "matcher": {"begin <= at.hour", "begin < at.hour"},
	} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), kind)
			run(t, t.TempDir(), binary(t), "plugin", "new", "--lang", "python", "--dir", dir, kind, "acme/"+kind+".x")
			out := run(t, dir, "make", "test", "VENV="+venv, "GUIDON="+binary(t))
			if !strings.Contains(out, "\nOK\n") || !strings.Contains(out, " 0 failed") {
				t.Errorf("no tests or no report:\n%s", out)
			}
			if out := run(t, dir, filepath.Join(venv, "bin", "pytest"), "-q"); !strings.Contains(out, " passed") {
				t.Errorf("pytest:\n%s", out)
			}
			rewrite(t, filepath.Join(dir, "src", "plugin.py"), change[0], change[1])
			wrong := exec.Command(filepath.Join(venv, "bin", "python"), "-m", "unittest")
			wrong.Dir = dir
			if out, err := wrong.CombinedOutput(); err == nil || !strings.Contains(string(out), "FAILED") {
				t.Errorf("the tests accept a wrong plugin: %v\n%s", err, out)
			}
		})
	}
}

// rewrite replaces a text in a file, which must contain it.
func rewrite(t *testing.T, path, before, after string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), before) {
		t.Fatalf("%s does not contain %q: %v", path, before, err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), before, after)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNodeSink judges a sink in Node.js that uses nothing but the contract page and the
// .proto files, and delivers events to it.
func TestNodeSink(t *testing.T) {
	t.Parallel()
	plugin := filepath.Join(install(t, "node-sink"), "lines")
	conforms(t, plugin, `{"path": "events.ndjson"}`, "--observe", "cat events.ndjson")
	delivered(t, plugin)
}

// newRust writes a plugin in Rust with plugin new, runs its make test, which judges it,
// and returns its executable. The compiled dependencies are kept.
func newRust(t *testing.T, kind, name string) string {
	t.Helper()
	work := install(t, "plugin-rust")
	dir := filepath.Join(t.TempDir(), name)
	run(t, t.TempDir(), binary(t), "plugin", "new", "--lang", "rust", "--dir", dir, kind, "example/"+name)
	out := run(t, dir, "nice", "env", "CARGO_TARGET_DIR="+filepath.Join(work, "target"), "make", "test", "PROFILE=dev", "GUIDON="+binary(t))
	if !strings.Contains(out, " 0 failed") {
		t.Errorf("the report:\n%s", out)
	}
	return filepath.Join(dir, name)
}

// TestRustPlugins judges the plugins in Rust that plugin new writes, and delivers
// events to the sink: rustls requires and verifies the certificate of the host.
func TestRustPlugins(t *testing.T) {
	t.Parallel()
	t.Run("sink", func(t *testing.T) { delivered(t, newRust(t, "sink", "lines")) })
	t.Run("notifier", func(t *testing.T) {
		longTest(t)
		newRust(t, "notifier", "chat")
	})
	t.Run("matcher", func(t *testing.T) {
		longTest(t)
		newRust(t, "matcher", "begins")
	})
}

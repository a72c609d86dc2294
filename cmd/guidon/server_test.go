package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bin is the path of the binary under test: the one that GUIDON_TEST_BINARY names, or one
// that TestMain builds.
var bin string

func TestMain(m *testing.M) {
	if address := os.Getenv(attackVariable); address != "" {
		attackForever(address)
	}
	serveDisk()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "guidon-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	pluginDir = dir

	if bin = os.Getenv("GUIDON_TEST_BINARY"); bin != "" {
		if err := checkBinary(bin); err != nil {
			fmt.Fprintf(os.Stderr, "GUIDON_TEST_BINARY: %v\n", err)
			return 1
		}
		return m.Run()
	}
	bin = filepath.Join(dir, "guidon")
	if err := goBuild(bin, "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// checkBinary checks that tests can run a binary from any directory.
func checkBinary(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not an absolute path", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// longTest skips a test that builds modules, or repeats what another test does once. It
// runs with GUIDON_TEST_LONG=1, and when one of the variables that set its size is set.
func longTest(t testing.TB, sizes ...string) {
	t.Helper()
	for _, name := range append(sizes, "GUIDON_TEST_LONG") {
		if os.Getenv(name) != "" {
			return
		}
	}
	t.Skip("long test: run it with GUIDON_TEST_LONG=1 or make test-long")
}

// server is a data directory and the server process on it, which tests may stop
// and start again.
type server struct {
	dir, address, url, admin, project, personal, lines string

	cmd   *exec.Cmd
	log   *os.File
	group string // the control group of its processes; empty: none
	cut   func() // what crash does after the kill; nil: nothing

	whileStarting func() // what start calls until the server is ready; nil: nothing
}

var keyText = regexp.MustCompile(`ph[cx]_[A-Za-z0-9_-]{20,}`)

func newServer(t testing.TB) *server {
	t.Helper()
	return newServerIn(t, t.TempDir())
}

// newServerIn is newServer with the data directory, the config and the output of the
// file sink below dir.
func newServerIn(t testing.TB, dir string) *server {
	t.Helper()
	// go test notes what tests read: it repeats a cached result only while the variable, and
	// size and time of a binary within the module, are the same.
	if _, err := os.Stat(os.Getenv("GUIDON_TEST_BINARY")); os.Getenv("GUIDON_TEST_BINARY") != "" && err != nil {
		t.Fatal(err)
	}
	s := &server{dir: dir, address: freeAddress(t), admin: freeAddress(t), lines: filepath.Join(dir, "events.ndjson")}
	s.url = "http://" + s.address
	yaml := "plugins:\n  instances:\n    - name: lines\n      kind: sink\n      use: file\n      config:\n        path: " + s.lines + "\n"
	if err := os.WriteFile(s.config(), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.log, err = os.Create(filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			output, _ := os.ReadFile(s.log.Name())
			t.Logf("last log lines of the server:\n%s", output[max(0, len(output)-8000):])
		}
		s.log.Close()
	})
	return s
}

var usedPorts sync.Map

// freeAddress returns a loopback address that no process listens on. Its port is
// below those that the kernel hands out, so that no connection or listener of another
// test takes it before the server does, or while the server is restarted.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		if _, used := usedPorts.LoadOrStore(address, true); !used {
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

func (s *server) config() string { return filepath.Join(s.dir, "guidon.yaml") }
func (s *server) data() string   { return filepath.Join(s.dir, "data") }

// guidon runs a command on the server's directory and returns its output.
func (s *server) guidon(args ...string) (string, error) {
	cmd := exec.Command(bin, args...)
	cmd.Dir = s.dir
	cmd.Env = s.env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *server) env() []string {
	return append(os.Environ(), "GUIDON_HTTP_ADDRESS="+s.address, "GUIDON_HTTP_ADMIN_ADDRESS="+s.admin, "GUIDON_DATA_DIR="+s.data(), "GUIDON_CONFIG="+s.config(),
		"GUIDON_HTTP_MANAGE_RATE_PER_SECOND=0") // tests poll
}

// start runs `guidon serve`, waits until it is ready and returns how long that took.
func (s *server) start(t testing.TB) time.Duration {
	t.Helper()
	begin := time.Now()
	s.launch(t)
	deadline := waitDeadline(t, patience)
	for !s.isOK("/_readiness") {
		if s.whileStarting != nil {
			s.whileStarting()
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready after %s", time.Since(begin).Round(time.Second))
		}
		time.Sleep(2 * time.Millisecond)
	}
	took := time.Since(begin)
	// The server prints the keys after it listens, so they may appear later.
	for s.project == "" || s.personal == "" {
		output, err := os.ReadFile(s.log.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keyText.FindAllString(string(output), -1) {
			if strings.HasPrefix(key, "phc_") {
				s.project = key
			} else {
				s.personal = key
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the first run printed no keys: %s", output)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return took
}

// launch runs `guidon serve` and does not wait for it.
func (s *server) launch(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(bin, "serve")
	if s.group != "" {
		s.cmd = exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, s.group, bin, "serve")
	}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.env(), s.log, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process with SIGKILL and waits for it, but not for its plugins.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// crash is kill, and the cut of the power if the server has one.
func (s *server) crash() {
	s.kill()
	if s.cut != nil {
		s.cut()
	}
}

// stop sends SIGTERM and returns the error of the process, nil for exit code 0.
func (s *server) stop(t testing.TB) error {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		s.cmd = nil
		return err
	case <-time.After(time.Until(waitDeadline(t, patience))):
		t.Fatal("the server does not stop")
		return nil
	}
}

func (s *server) isOK(path string) bool {
	res, err := http.Get(s.url + path)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode == http.StatusOK
}

func (s *server) post(path, body string) (int, error) {
	res, err := http.Post(s.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// get reads a management path and decodes the answer.
func (s *server) get(t testing.TB, path string, out any) {
	t.Helper()
	base := s.url
	if strings.HasPrefix(path, "/api/plugins") {
		base = "http://" + s.admin
	}
	req, err := http.NewRequest(http.MethodGet, base+strings.TrimPrefix(path, s.url), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.personal)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d %v: %s", path, res.StatusCode, err, body)
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(out); err != nil {
		t.Fatalf("GET %s: %v: %s", path, err, body)
	}
}

// patience is how long a test waits for what must happen. It says nothing about how long
// that may take: it ends the wait of a test that would never end. A loaded machine must
// not come near it.
const patience = 5 * time.Minute

// until calls try until it returns "". If that does not happen, the test fails with the
// last result of try.
func until(t testing.TB, try func() string) {
	t.Helper()
	untilWithin(t, patience, try)
}

// untilWithin is until for a wait whose length depends on the size of the test.
func untilWithin(t testing.TB, limit time.Duration, try func() string) {
	t.Helper()
	begin := time.Now()
	deadline := waitDeadline(t, limit)
	for {
		problem := try()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s still: %s", time.Since(begin).Round(time.Second), problem)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// waitDeadline returns the end of a wait that begins now: after limit, and early enough
// that the test says what it waited for before go test -timeout ends the process.
func waitDeadline(t testing.TB, limit time.Duration) time.Time {
	deadline := time.Now().Add(limit)
	if withEnd, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, limited := withEnd.Deadline(); limited && end.Add(-20*time.Second).Before(deadline) {
			return end.Add(-20 * time.Second)
		}
	}
	return deadline
}

// runningProcesses lists the processes of the binary under test.
func runningProcesses(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, dir := range dirs {
		if exe, err := os.Readlink(dir + "/exe"); err == nil && strings.TrimSuffix(exe, " (deleted)") == bin {
			line, _ := os.ReadFile(dir + "/cmdline")
			out = append(out, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

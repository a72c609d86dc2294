//go:build e2e

package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// server is a running server on a directory of its own.
type server struct {
	url, project, personal, lines string
	link                          string   // to sign in, as the first run prints it
	data                          string   // directory of the database
	admin                         string   // address for operators
	environment                   []string // of the process, beside that of the test
}

var signInLink = regexp.MustCompile(`http://\S+/sign-in#link=\S+`)

var keys = regexp.MustCompile(`ph[cx]_[A-Za-z0-9_-]{20,}`)

// longTest leaves a test to the long form of make e2e, which make prove runs: more
// clients of one kind, destinations under kill, moves.
func longTest(t *testing.T) {
	t.Helper()
	if os.Getenv("GUIDON_TEST_LONG") == "" {
		t.Skip("long test: run it with GUIDON_TEST_LONG=1")
	}
}

// start runs bin/guidon with one file sink, as in the README, and further variables
// of the environment.
func start(t *testing.T, environment ...string) *server {
	t.Helper()
	return startWith(t, "", environment...)
}

// itsURL in the environment of a server stands for the URL of the server.
const itsURL = "{url}"

// startWith is start with further instances of plugins, as YAML of the list.
func startWith(t *testing.T, instances string, environment ...string) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{lines: filepath.Join(dir, "events.ndjson"), data: filepath.Join(dir, "data"), environment: environment}
	config := filepath.Join(dir, "guidon.yaml")
	yaml := "plugins:\n  instances:\n    - name: lines\n      kind: sink\n      use: file\n      config:\n        path: " + s.lines + "\n" + instances
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	s.url, s.admin = "http://"+address, freeAddress(t)
	for i, v := range environment {
		environment[i] = strings.ReplaceAll(v, itsURL, s.url)
	}
	out, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "serve", "--config", config)
	cmd.Env = append(os.Environ(), "GUIDON_HTTP_ADDRESS="+address, "GUIDON_HTTP_ADMIN_ADDRESS="+s.admin, "GUIDON_HTTP_MANAGE_RATE_PER_SECOND=0", "GUIDON_DATA_DIR="+s.data)
	// A busy machine can take longer than the default to read a person: the flags would be left out.
	cmd.Env = append(cmd.Env, "GUIDON_FLAGS_LOOKUP_TIMEOUT=10s")
	cmd.Env = append(cmd.Env, environment...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(out.Name())
			t.Logf("server log:\n%s", tail(log, 6000))
		}
	})
	eventually(t, time.Minute, "the server is ready", func() error {
		return s.status(http.MethodGet, "/_readiness", nil, http.StatusOK)
	})
	eventually(t, 20*time.Second, "the first run has printed its keys", func() error {
		output, err := os.ReadFile(out.Name())
		s.readKeys(output)
		s.link = string(signInLink.Find(output))
		if s.project == "" || s.personal == "" {
			return errors.Join(err, fmt.Errorf("output: %s", output))
		}
		return nil
	})
	return s
}

// readKeys takes the keys from the output of the first run.
func (s *server) readKeys(output []byte) {
	for _, key := range keys.FindAllString(string(output), -1) {
		if strings.HasPrefix(key, "phc_") {
			s.project = key
		} else {
			s.personal = key
		}
	}
}

// counted is the server behind a proxy that counts requests by path.
func (s *server) counted(t *testing.T) (*server, func(path string) int) {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var lock sync.Mutex
	counts := map[string]int{}
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		counts[strings.TrimSuffix(r.URL.Path, "/")]++
		lock.Unlock()
		// net/http closes the body of a request once its answer is written, and
		// the transport may still be reading it: it gets a copy.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	behind := *s
	behind.url = proxy.URL
	return &behind, func(path string) int {
		lock.Lock()
		defer lock.Unlock()
		return counts[path]
	}
}

func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("GUIDON_E2E_BINARY")
	if path == "" {
		t.Fatal("GUIDON_E2E_BINARY is not set: run make e2e")
	}
	return path
}

func workDir(t *testing.T) string {
	t.Helper()
	path := os.Getenv("GUIDON_E2E_WORK")
	if path == "" {
		t.Fatal("GUIDON_E2E_WORK is not set: run make e2e")
	}
	return path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// do sends one management request and decodes the answer into out.
func (s *server) do(t *testing.T, method, path string, body, out any, want int) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.personal)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	if res.StatusCode != want {
		t.Fatalf("%s %s: got %d, want %d: %s", method, path, res.StatusCode, want, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
}

func (s *server) status(method, path string, body io.Reader, want int) error {
	req, err := http.NewRequest(method, s.url+path, body)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != want {
		answer, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s %s: got %d, want %d: %s", method, path, res.StatusCode, want, answer)
	}
	return nil
}

// event is one event in the format of the event store and of the file sink.
type event struct {
	UUID       string         `json:"uuid"`
	Event      string         `json:"event"`
	DistinctID string         `json:"distinct_id"`
	Properties map[string]any `json:"properties"`
}

// stored lists the events of one name in the event store, oldest first.
func (s *server) stored(t *testing.T, name string) []event {
	t.Helper()
	var page struct {
		Results []event `json:"results"`
	}
	s.do(t, http.MethodGet, "/api/projects/1/events/?limit=1000&event="+name, nil, &page, http.StatusOK)
	for i, j := 0, len(page.Results)-1; i < j; i, j = i+1, j-1 {
		page.Results[i], page.Results[j] = page.Results[j], page.Results[i]
	}
	return page.Results
}

// delivered lists the events of one name in the file of the sink.
func (s *server) delivered(t *testing.T, name string) []event {
	t.Helper()
	f, err := os.Open(s.lines)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("the file sink wrote a line that is not JSON: %v: %s", err, lines.Bytes())
		}
		if e.Event == name {
			out = append(out, e)
		}
	}
	return out
}

// eventually calls try until it succeeds, and fails the test after limit.
func eventually(t *testing.T, limit time.Duration, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s, not yet true that %s: %v", limit, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

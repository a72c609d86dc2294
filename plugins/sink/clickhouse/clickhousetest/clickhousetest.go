// Package clickhousetest starts a ClickHouse for tests.
package clickhousetest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Start starts a ClickHouse of its own, or uses the one that is named by
// GUIDON_TEST_CLICKHOUSE, and returns its URL. The password is hush.
func Start(t testing.TB) string {
	t.Helper()
	if address := os.Getenv("GUIDON_TEST_CLICKHOUSE"); address != "" {
		return address
	}
	return StartServer(t).URL
}

// Server is a ClickHouse of one test, which the test may kill and start again.
type Server struct {
	URL string // of the HTTP interface

	dir   string
	log   *os.File
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
}

// StartServer starts a ClickHouse with a directory of its own, which ends with t. Its user
// reader, with the same password, may only read. It needs the installed binary: a server in GUIDON_TEST_CLICKHOUSE cannot be killed.
func StartServer(t testing.TB) *Server {
	t.Helper()
	return StartServerOn(t, t.TempDir(), freePort(t), freePort(t))
}

// StartServerOn is StartServer with an empty directory, and the ports of the HTTP and the
// native interface.
func StartServerOn(t testing.TB, dir string, web, native int) *Server {
	t.Helper()
	s := &Server{dir: dir, URL: fmt.Sprintf("http://127.0.0.1:%d", web)}
	files := map[string]string{
		"config.xml": fmt.Sprintf(`<yandex><logger><level>warning</level><console>1</console></logger><listen_host>127.0.0.1</listen_host>
<http_port>%d</http_port><tcp_port>%d</tcp_port><path>%s/data/</path><tmp_path>%[3]s/tmp/</tmp_path><mark_cache_size>5368709</mark_cache_size>
<users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database></yandex>`, web, native, s.dir),
		"users.xml": `<yandex><profiles><default/><reading><readonly>2</readonly></reading></profiles><quotas><default/></quotas><users><default><password>hush</password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
<reader><password>hush</password><networks><ip>127.0.0.1</ip></networks><profile>reading</profile><quota>default</quota></reader></users></yandex>`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"data", "tmp"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill(t)
		_ = s.log.Close()
		if log, err := os.ReadFile(s.log.Name()); err == nil && t.Failed() {
			t.Logf("ClickHouse said, last:\n%s", log[max(0, len(log)-4000):])
		}
	})
	s.Start(t)
	return s
}

// Start starts the server and returns when it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	program, args := serverProgram(t)
	cmd := exec.Command(program, append(args, "--config-file="+filepath.Join(s.dir, "config.xml"))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, s.log, s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	s.cmd, s.ended = cmd, ended
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if res, err := http.Get(s.URL + "/ping"); err == nil {
			_ = res.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("ClickHouse is not ready after a minute")
		}
	}
}

// Kill ends the server with SIGKILL and returns when it has ended.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // fails if it has ended
	<-s.ended
}

func serverProgram(t testing.TB) (program string, args []string) {
	t.Helper()
	for _, name := range []string{"clickhouse-server", "/usr/sbin/clickhouse-server", "/usr/bin/clickhouse-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath("clickhouse"); err == nil {
		return path, []string{"server"}
	}
	t.Fatal("there is no clickhouse-server: install the package, or set GUIDON_TEST_CLICKHOUSE")
	return "", nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	return port
}

// Query runs a statement as the user default and returns what it answers.
func Query(t testing.TB, url, statement string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url+"/?wait_end_of_query=1", strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-ClickHouse-User", "default")
	req.Header.Set("X-ClickHouse-Key", "hush")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", statement, answer)
	}
	return strings.TrimSpace(string(answer))
}

// Forward returns a handler that forwards requests to the server at a URL. It reads a request
// before it forwards it: net/http closes the body of a request when its answer begins, which
// breaks the answer off while the proxy still reads the body.
func Forward(t testing.TB, server string) http.Handler {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}

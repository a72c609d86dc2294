package plugintest_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/hostcert"
	"github.com/guidonhq/guidon/sdk/plugintest"
)

// elsewhere is a plugin that its operator has started, and may start again.
type elsewhere struct {
	t      *testing.T
	name   string
	env    []string
	remote plugintest.Remote
	pair   tls.Certificate // of the server
	mu     sync.Mutex
	cmd    *exec.Cmd
}

// newElsewhere makes the certificates of both sides and starts the plugin.
func newElsewhere(t *testing.T, name string) *elsewhere {
	t.Helper()
	dir := t.TempDir()
	e := &elsewhere{t: t, name: name}
	for _, side := range []string{"plugin", "server"} {
		pair, text, err := hostcert.New()
		if err != nil {
			t.Fatal(err)
		}
		key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, side+".pem"), text)
		write(t, filepath.Join(dir, side+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
		e.pair = pair
	}
	e.remote = plugintest.Remote{
		CA: filepath.Join(dir, "plugin.pem"), Cert: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server.key"), ServerName: hostcert.ServerName,
	}
	e.env = []string{
		sdk.TLSCertKey + "=" + filepath.Join(dir, "plugin.pem"), sdk.TLSKeyKey + "=" + filepath.Join(dir, "plugin.key"),
		sdk.TLSCAKey + "=" + filepath.Join(dir, "server.pem"),
	}
	e.remote.Address = e.start("127.0.0.1:0")
	t.Cleanup(func() { _ = e.kill() })
	return e
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

var printedAddress = regexp.MustCompile(`address: "([^"]+)"`)

// start starts the process and returns the address that it prints.
func (e *elsewhere) start(address string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cmd = exec.Command(os.Args[0], e.name)
	e.cmd.Env = append(slices.Clone(e.env), sdk.ListenKey+"="+address)
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := printedAddress.FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	e.t.Fatal("the plugin printed no address")
	return ""
}

func (e *elsewhere) kill() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = e.cmd.Wait() // killed
	return nil
}

// restart ends the process at once and starts it at the same address.
func (e *elsewhere) restart() error {
	err := e.kill()
	e.start(e.remote.Address)
	return err
}

// outcomes judges a target and returns the cases by outcome, and the reasons.
func outcomes(t *testing.T, target plugintest.Target) (map[string]plugintest.Case, *plugintest.Report) {
	t.Helper()
	target.Events = 2000
	r, err := plugintest.Judge(t.Context(), target, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]plugintest.Case{}
	for _, c := range r.Cases {
		cases[c.Name] = c
	}
	return cases, r
}

// A remote sink is judged over the network: with the operator's restarts, without the
// cases of processes.
func TestRemoteSink(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t, "sink-")
	path := filepath.Join(t.TempDir(), "events.ndjson")
	cases, r := outcomes(t, plugintest.Target{
		Remote: e.remote, Restart: e.restart, Config: map[string]any{"path": path}, Other: map[string]any{"path": path + ".other"},
		Received: func() ([]sdk.Event, error) { return read[sdk.Event](path) },
	})
	if r.Failed > 0 || r.Passed < 25 {
		t.Errorf("reported %+v", r)
	}
	for name, want := range map[string]plugintest.Outcome{
		"speaks mutual TLS": plugintest.Passed, "begins again for a server that was restarted": plugintest.Passed,
		"works on after the connection was lost": plugintest.Passed, "loses nothing when it is killed in the middle": plugintest.Passed,
		"ends when the host is gone": plugintest.Skipped, "leaves no process behind": plugintest.Skipped,
	} {
		if got := cases[name]; got.Outcome != want || want == plugintest.Skipped && !strings.HasPrefix(got.Reason, "not applicable: ") {
			t.Errorf("%s: %s (%s), want %s", name, got.Outcome, got.Reason, want)
		}
	}
}

func TestRemoteNotifierAndMatcher(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "messages")
	for name, target := range map[string]plugintest.Target{
		"notifier-": {Config: map[string]any{"path": path}, Messages: func() (int, error) {
			messages, err := read[string](path)
			return len(messages), err
		}},
		"matcher-": {},
	} {
		target.Remote = newElsewhere(t, name).remote
		cases, r := outcomes(t, target)
		if r.Failed > 0 || r.Passed < 15 || cases["works on after the connection was lost"].Outcome != plugintest.Passed {
			t.Errorf("%s: reported %+v", name, r)
		}
	}
}

// A proxy that asks for no certificate opens a remote plugin to the network.
func TestRemotePluginBehindAnOpenProxyFails(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t, "matcher-")
	config := hostcert.ClientConfig(e.pair)
	config.NextProtos = []string{"h2"}
	config.InsecureSkipVerify = true
	open, _, err := hostcert.New()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{open}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	behind := e.remote.Address
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, behind, config)
		}
	}()
	write(t, e.remote.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: open.Certificate[0]}))
	e.remote.Address = listener.Addr().String()
	cases, _ := outcomes(t, plugintest.Target{Remote: e.remote, Only: []string{"mutual TLS"}})
	if c := cases["speaks mutual TLS"]; c.Outcome != plugintest.Failed || !strings.Contains(c.Reason, "certificate") {
		t.Errorf("the case says %s: %s", c.Outcome, c.Reason)
	}
}

func forward(from net.Conn, address string, config *tls.Config) {
	defer func() { _ = from.Close() }()
	to, err := tls.Dial("tcp", address, config)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(to, from) }()
	_, _ = io.Copy(from, to)
}

func TestRemoteTargetsThatNameTooLittle(t *testing.T) {
	t.Parallel()
	for want, target := range map[string]plugintest.Target{
		"is host:port":           {Remote: plugintest.Remote{Address: "example.com"}},
		"needs ca, cert and key": {Remote: plugintest.Remote{Address: "example.com:1"}},
		"no such file":           {Remote: plugintest.Remote{Address: "example.com:1", CA: "/none", Cert: "/none", Key: "/none"}},
		"has no command":         {Command: []string{"x"}, Remote: plugintest.Remote{Address: "example.com:1", CA: "/none", Cert: "/none", Key: "/none"}},
		"is for a remote plugin": {Command: []string{"x"}, Restart: func() error { return nil }},
		"there is no command":    {},
	} {
		if _, err := plugintest.Judge(t.Context(), target, t.TempDir()); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

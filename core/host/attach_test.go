package host_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// byHand starts a plugin without a host, and returns it with its output.
func byHand(t *testing.T, name string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gd") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd := exec.Command(self, "plugin", "exec", name)
	cmd.Env = append(env, "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	var output strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		output.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "reattach:") || strings.HasPrefix(lines.Text(), "remote:") {
			break
		}
	}
	go func() {
		defer close(ended)
		for lines.Scan() { // discard the rest
		}
		_ = cmd.Wait()
	}()
	return cmd, output.String()
}

var (
	printedSocket  = regexp.MustCompile(`socket: "(.+)", pid: (\d+)`)
	printedAddress = regexp.MustCompile(`address: "(.+)", ca`)
)

// reattached returns the config that a plugin started by hand prints.
func reattached(t *testing.T, output string, pluginConfig map[string]any) settings.Instance {
	t.Helper()
	m := printedSocket.FindStringSubmatch(output)
	if m == nil || !strings.Contains(output, "use: probe\n") {
		t.Fatalf("it printed %q", output)
	}
	pid, _ := strconv.Atoi(m[2])
	c := instance("p", "probe", pluginConfig)
	c.Reattach = settings.Reattach{Socket: m[1], PID: pid}
	return c
}

func TestReattach(t *testing.T) {
	t.Parallel()
	whole := t
	trace := filepath.Join(t.TempDir(), "trace")
	cmd, output := byHand(t, "probe", sdk.DebugKey+"=1")
	c := reattached(t, output, map[string]any{"trace": trace})
	r := start(t, config(c))
	s := r.sink(t)
	write(t, s, batch("ok-1", 0, 3))
	if st := r.Status()[0]; st.PID != 0 || st.Plugin != "probe" || st.Address != c.Reattach.Socket {
		t.Errorf("status %+v", st)
	}

	t.Run("another config is one for the same process", func(t *testing.T) {
		c.Config = map[string]any{"trace": trace, "number": 2}
		if err := r.Apply(t.Context(), config(c)); err != nil {
			t.Fatal(err)
		}
		r.serves(t, 2)
		write(t, s, batch("ok-2", 3, 3))
	})

	t.Run("the server ends, the process does not", func(t *testing.T) {
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !alive(cmd.Process.Pid) {
			t.Fatal("the process was ended")
		}
		// The next server counts its generations from one again.
		r = start(whole, config(c))
		s = r.sink(t)
		write(t, s, batch("ok-3", 6, 3))
	})

	t.Run("the process ends, the server waits for another", func(t *testing.T) {
		kill(t, cmd.Process.Pid, syscall.SIGKILL)
		eventually(t, func() string { // the first error is that the connection was lost
			if st := r.Status()[0]; st.State != lifecycle.StateBackoff || !strings.Contains(st.LastError, c.Reattach.Socket) {
				return fmt.Sprintf("%s, last error %q", st.State, st.LastError)
			}
			return ""
		})
		_, output := byHand(whole, "probe", sdk.DebugKey+"=1")
		if err := r.Apply(t.Context(), config(reattached(t, output, map[string]any{"trace": trace}))); err != nil {
			t.Fatal(err)
		}
		ready(t, r, s)
		write(t, s, batch("ok-4", 9, 3))
	})
	text, _ := os.ReadFile(trace)
	if strings.Count(string(text), "write ok-") != 4 {
		t.Errorf("trace %s", text)
	}
}

func TestReattachRefusesAnotherProcess(t *testing.T) {
	t.Parallel()
	_, output := byHand(t, "probe", sdk.DebugKey+"=1")
	c := reattached(t, output, nil)
	c.Reattach.PID++ // as if the process id had been reused
	r := start(t, config(c))
	if st := r.becomes(t, lifecycle.StateUntrusted); st.Reason != "stranger" || !strings.Contains(st.LastError, "the config says") {
		t.Errorf("status %+v", st)
	}
	c.Reattach.PID--
	c.Use = "probe2"
	if err := r.Apply(t.Context(), config(c)); err != nil {
		t.Fatal(err)
	}
	if st := r.becomes(t, lifecycle.StateIncompatible); !strings.Contains(st.LastError, "says that it is probe") {
		t.Errorf("status %+v", st)
	}
}

// authority makes certificates for a test.
type authority struct {
	dir, file string
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.file = filepath.Join(a.dir, "ca.pem")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.key = key
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a.keep(t, a.file, "CERTIFICATE", der)
	return a
}

// issue makes a certificate that is good for both ends.
func (a *authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, &pair.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	a.keep(t, cert, "CERTIFICATE", der)
	text, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	a.keep(t, key, "PRIVATE KEY", text)
	return cert, key
}

func (a *authority) keep(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRemotePluginNeedsCertificatesOnBothSides(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, "plugin.test")
	listen := func(address string) (*exec.Cmd, string) {
		cmd, output := byHand(t, "probe", sdk.ListenKey+"="+address, sdk.TLSCertKey+"="+cert, sdk.TLSKeyKey+"="+key, sdk.TLSCAKey+"="+ours.file)
		m := printedAddress.FindStringSubmatch(output)
		if m == nil {
			t.Logf("it printed %q", output)
			return cmd, ""
		}
		return cmd, m[1]
	}
	var cmd *exec.Cmd
	var address string
	eventually(t, func() string {
		// The plugin listens on this port twice: it is below those that the kernel hands out.
		if cmd, address = listen(fmt.Sprintf("127.0.0.1:%d", 10_000+mathrand.IntN(20_000))); address == "" {
			return "no free port"
		}
		return ""
	})
	mine, myKey := ours.issue(t, "server.test")
	good := instance("p", "probe", nil)
	good.Remote = settings.Remote{Address: address, CA: ours.file, Cert: mine, Key: myKey, ServerName: "plugin.test"}

	stranger, strangerKey := theirs.issue(t, "server.test")
	for name, change := range map[string]func(*settings.Remote){
		"a server the plugin does not trust": func(c *settings.Remote) { c.Cert, c.Key = stranger, strangerKey },
		"a plugin the server does not trust": func(c *settings.Remote) { c.CA = theirs.file },
		"a plugin of another name":           func(c *settings.Remote) { c.ServerName = "else.test" },
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			change(&bad.Remote)
			r := start(t, config(bad))
			if st := r.becomes(t, lifecycle.StateBackoff); !strings.Contains(st.LastError, "cannot talk to "+address) {
				t.Errorf("last error %q", st.LastError)
			}
		})
	}
	t.Run("a certificate that is not there", func(t *testing.T) {
		bad := good
		bad.Remote.Cert = filepath.Join(t.TempDir(), "missing")
		start(t, config(bad)).becomes(t, lifecycle.StateMisconfigured)
	})

	t.Run("both trust each other", func(t *testing.T) {
		other := good
		other.Name = "q"
		cfg := config(good, other)
		cfg.Restart.QuarantineExits = 2
		r := start(t, cfg)
		for _, s := range r.Sinks() {
			ready(t, r, s)
			write(t, s, batch("ok-1", 0, 3))
		}
		kill(t, cmd.Process.Pid, syscall.SIGKILL)
		eventually(t, func() string {
			if st := r.Status(); st[0].State != lifecycle.StateBackoff || st[1].State != lifecycle.StateBackoff || r.logs.FilterMessage("plugin restart scheduled").Len() < 6 {
				return fmt.Sprintf("%s and %s", st[0].State, st[1].State)
			}
			return ""
		})
		if _, again := listen(address); again != address {
			t.Fatalf("it listens on %q", again)
		}
		for _, s := range r.Sinks() {
			ready(t, r, s)
			write(t, s, batch("ok-2", 3, 3))
		}
	})
}

func TestValidateRejectsInvalidConnections(t *testing.T) {
	t.Parallel()
	tls := settings.Remote{Address: "there:1", CA: "ca", Cert: "cert", Key: "key"}
	for says, change := range map[string]func(*settings.Instance){
		"exclude each other":    func(c *settings.Instance) { c.Reattach.Socket, c.Remote = "/s", tls },
		"needs a socket":        func(c *settings.Instance) { c.Reattach.PID = 7 },
		"an absolute path":      func(c *settings.Instance) { c.Reattach.Socket = "s" },
		"must not be negative":  func(c *settings.Instance) { c.Reattach = settings.Reattach{Socket: "/s", PID: -1} },
		"must be host:port":     func(c *settings.Instance) { c.Remote = tls; c.Remote.Address = "there" },
		"ca, cert and key":      func(c *settings.Instance) { c.Remote.Address = "there:1" },
		"sha256, limits, netwo": func(c *settings.Instance) { c.Remote, c.SHA256 = tls, "ab" },
	} {
		c := instance("p", "probe", nil)
		change(&c)
		if err := config(c).Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestRemotePluginRequiresCertificates(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "plugin", "exec", "probe")
	cmd.Env = []string{sdk.ListenKey + "=127.0.0.1:0"}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), sdk.TLSCAKey) {
		t.Errorf("%v: %s", err, out)
	}
}

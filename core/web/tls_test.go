package web_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/tlsfiles"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// tlsGet makes a request on a connection of its own.
func tlsGet(t *testing.T, cfg *tls.Config, url string) (*http.Response, error) {
	t.Helper()
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err == nil {
		_ = res.Body.Close()
	}
	return res, err
}

// Both addresses serve TLS 1.2 or later and HTTP/1.1; a new certificate is used
// without a restart, and files that do not fit leave the old one in use.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := webtest.NewAuthority(t)
	files := tlsfiles.Files{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	serial := authority.Issue(t, files.CertFile, files.KeyFile)
	cfg := webtest.Config()
	cfg.TLS = files
	cfg.AdminTLS = files
	cfg.AdminTLS.ClientCAFile = authority.File
	log, lines := watched()
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), log, nil, routesFunc(func(g *web.Router) {
		g.Manage("GET", "/api/list", "", func(c *web.Call) error { return c.List(c.Page(), 500, []int{1}) })
	}))
	if !strings.HasPrefix(s.URL(), "https://") || !strings.HasPrefix(s.AdminURL(), "https://") {
		t.Fatalf("URLs %s and %s", s.URL(), s.AdminURL())
	}
	trust := &tls.Config{RootCAs: authority.Pool}
	current := func() int64 {
		res, err := tlsGet(t, trust, s.URL()+"/_liveness")
		if err != nil {
			t.Fatal(err)
		}
		if res.TLS.Version < tls.VersionTLS12 || res.ProtoMajor != 1 || res.Header.Get("Strict-Transport-Security") == "" {
			t.Errorf("TLS %x, HTTP/%d, headers %v", res.TLS.Version, res.ProtoMajor, res.Header)
		}
		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := current(); got != serial {
		t.Errorf("certificate %d, want %d", got, serial)
	}
	if _, err := tlsGet(t, &tls.Config{RootCAs: authority.Pool, MaxVersion: tls.VersionTLS11}, s.URL()+"/"); err == nil { //nolint:gosec // refused by the server
		t.Error("TLS 1.1 was accepted")
	}

	// The admin address needs a certificate of the authority.
	if _, err := tlsGet(t, trust, s.AdminURL()+"/_liveness"); err == nil {
		t.Error("a client without a certificate was accepted")
	}
	own := filepath.Join(dir, "client")
	authority.Issue(t, own+".pem", own+".key")
	pair, err := tls.LoadX509KeyPair(own+".pem", own+".key")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tlsGet(t, &tls.Config{RootCAs: authority.Pool, Certificates: []tls.Certificate{pair}}, s.AdminURL()+"/_liveness"); err != nil {
		t.Errorf("a client with a certificate: %v", err)
	}

	// Links are to https.
	req, _ := http.NewRequest(http.MethodGet, s.URL()+"/api/list", nil)
	req.Header.Set("Authorization", "Bearer phx_test")
	client := http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 200)
	n, _ := res.Body.Read(text)
	_ = res.Body.Close()
	if !strings.Contains(string(text[:n]), `"next":"https://127.0.0.1`) {
		t.Errorf("list %s", text[:n])
	}

	// A pair that does not fit changes nothing; the right one is used.
	if err := os.WriteFile(files.CertFile, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); lines.FilterMessageSnippet("TLS certificate reload failed").Len() == 0; time.Sleep(50 * time.Millisecond) {
		if got := current(); got != serial {
			t.Fatalf("certificate %d, want %d", got, serial)
		}
		if time.Now().After(deadline) {
			t.Fatal("the broken file was not noticed")
		}
	}
	next := authority.Issue(t, files.CertFile, files.KeyFile)
	for deadline := time.Now().Add(time.Minute); current() != next; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not used")
		}
	}
}

func TestTLSFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.TLS.CertFile = "cert.pem"
	if _, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil); err == nil || !strings.Contains(err.Error(), "tls: cert_file and key_file") {
		t.Errorf("a certificate without a key: %v", err)
	}
	cfg.TLS.KeyFile = filepath.Join(t.TempDir(), "missing.pem")
	s, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "http.tls") {
		t.Errorf("a missing file: %v", err)
	}
}

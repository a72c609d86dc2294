// Package tlsfiles serves TLS with certificates from files that may change.
//
// The files are looked at with a handshake, at most once in an interval: a new
// certificate is used without a restart and without a goroutine that watches.
// Files that cannot be used (half written, of different pairs, expired names)
// leave the certificate in use; the log says so once for each change.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// checkInterval is the least time between two looks at the files.
const checkInterval = time.Second

// Files names the files of a TLS listener, in PEM. The zero value means no TLS.
type Files struct {
	// CertFile holds the certificate, followed by those of the authorities between
	// it and the root.
	CertFile string `koanf:"cert_file"`
	// KeyFile holds the private key of the certificate.
	KeyFile string `koanf:"key_file"`
	// ClientCAFile holds the authorities whose clients may connect. Empty: clients
	// need no certificate.
	ClientCAFile string `koanf:"client_ca_file"`
}

// Enabled reports whether TLS is configured.
func (f Files) Enabled() bool { return f != Files{} }

// Validate returns an error that names the missing setting below name. It does
// not read the files.
func (f Files) Validate(name string) error {
	if f.Enabled() && (f.CertFile == "" || f.KeyFile == "") {
		return fmt.Errorf("%s: cert_file and key_file are both needed", name)
	}
	return nil
}

// store holds the configuration of the files as they were last.
type store struct {
	files Files
	log   *zap.Logger

	mu      sync.Mutex
	current *tls.Config
	seen    [3]stamp // of the files, at the last attempt to load them
	checked time.Time
}

// stamp tells versions of a file apart.
type stamp struct {
	size     int64
	modified time.Time
}

// Config reads the files and returns a TLS configuration that follows them: TLS
// 1.2 or later, HTTP/1.1. It fails if the files cannot be used. Handshakes may
// run concurrently.
func Config(f Files, log *zap.Logger) (*tls.Config, error) {
	s := &store{files: f, log: log, checked: time.Now()}
	s.seen = s.stamps()
	var err error
	if s.current, err = load(f); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.latest(), nil },
	}, nil
}

// latest returns the configuration of the files, or the one before it if they
// cannot be used.
func (s *store) latest() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.checked) < checkInterval {
		return s.current
	}
	s.checked = time.Now()
	now := s.stamps()
	if now == s.seen {
		return s.current
	}
	s.seen = now
	fresh, err := load(s.files)
	if err != nil {
		s.log.Error("TLS certificate reload failed: the old one stays in use", zap.Error(err))
		return s.current
	}
	s.current = fresh
	s.log.Info("TLS certificate reloaded", zap.String("file", s.files.CertFile), zap.Time("expires", fresh.Certificates[0].Leaf.NotAfter))
	return s.current
}

func (s *store) stamps() (out [3]stamp) {
	for i, name := range [...]string{s.files.CertFile, s.files.KeyFile, s.files.ClientCAFile} {
		if info, err := os.Stat(name); err == nil {
			out[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return out
}

func load(f Files) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.CertFile, f.KeyFile, err)
	}
	if now := time.Now(); now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("certificate %s expired at %s", f.CertFile, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if f.ClientCAFile == "" {
		return c, nil
	}
	authorities, err := os.ReadFile(f.ClientCAFile)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("%s holds no certificate", f.ClientCAFile)
	}
	return c, nil
}

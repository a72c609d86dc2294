package process_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/sdk/hostcert"
)

// The certificate of the host is one that gRPC's C core and rustls accept.
func TestLaunchHandsOverCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "cert.pem")
	_, err := process.Launch(t.Context(), process.Options{
		Argv:         []string{"/bin/sh", "-c", `printf %s "$` + hostcert.EnvKey + `" >` + path + `; exit 1`},
		StartTimeout: time.Minute, SocketDir: dir, Logs: process.NewLogPipe(zap.NewNop(), 100, func(string, int) {}),
	})
	if err == nil {
		t.Fatal("a process that ends has no handshake")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no certificate: %q", text)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() || cert.IsCA {
		t.Errorf("the key is %T of %s, CA %v; want P-256 and no authority", cert.PublicKey, cert.SignatureAlgorithm, cert.IsCA)
	}
}

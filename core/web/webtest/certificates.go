package webtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for localhost and 127.0.0.1.
type Authority struct {
	File string // the certificate of the authority
	Pool *x509.CertPool

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

// NewAuthority makes an authority that ends with the test.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{File: filepath.Join(tb.TempDir(), "ca.pem"), Pool: x509.NewCertPool(), next: 2}
	a.cert, a.key = sign(tb, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	a.Pool.AddCert(a.cert)
	writePEM(tb, a.File, "CERTIFICATE", a.cert.Raw)
	return a
}

// Issue writes a new certificate and its key to two files, for servers and for
// clients. It returns the serial number.
func (a *Authority) Issue(tb testing.TB, certFile, keyFile string) int64 {
	tb.Helper()
	serial := a.next
	a.next++
	cert, key := sign(tb, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	writePEM(tb, keyFile, "EC PRIVATE KEY", raw)
	writePEM(tb, certFile, "CERTIFICATE", cert.Raw)
	return serial
}

func sign(tb testing.TB, template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	if parent == nil {
		parent, by = template, key
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return cert, key
}

func writePEM(tb testing.TB, path, kind string, raw []byte) {
	tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		tb.Fatal(err)
	}
}

package hostcert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"testing"

	"github.com/guidonhq/guidon/sdk/hostcert"
)

func TestCertificateSuitsAnyTLSLibrary(t *testing.T) {
	t.Parallel()
	pair, text, err := hostcert.New()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	key, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		t.Errorf("the key is %T, want P-256: gRPC's C core signs with no larger curve", cert.PublicKey)
	}
	if cert.IsCA || !cert.BasicConstraintsValid || cert.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("the certificate is an authority, which rustls refuses from a peer")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("no PEM: %s", text)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	other, _, err := hostcert.New()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := x509.ParseCertificate(other.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("the certificate of another process is accepted")
	}
}

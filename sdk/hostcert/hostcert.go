// Package hostcert makes the certificates with which a host authenticates itself to
// the plugins that it starts. The server and the conformance kit use it.
package hostcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// EnvKey is the environment variable that hands the certificate to the plugin, in PEM.
const EnvKey = "PLUGIN_CLIENT_CERT"

// ServerName is the name that the certificate of a plugin must be valid for.
const ServerName = "localhost"

// lifetime exceeds that of any process.
const lifetime = 30 * 365 * 24 * time.Hour

// New returns a new certificate with its key, for one process, and its PEM text.
//
// It is self-signed, with a key of the curve P-256, and is not a certificate authority:
// gRPC's C core (Python, C++, Ruby, PHP, C#) offers no signatures of P-521, and rustls
// refuses an authority as the certificate of a peer. Both, and Go, accept this one when
// it is the only certificate that they trust.
func New() (pair tls.Certificate, pemText []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: ServerName, Organization: []string{"Guidon"}}, DNSNames: []string{ServerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pair = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return pair, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// ClientConfig returns the settings of the connection of a host with this certificate.
// The caller sets RootCAs to the certificate of the plugin, from the handshake line.
func ClientConfig(pair tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, ServerName: ServerName}
}

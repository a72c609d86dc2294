package plugintest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/hostcert"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

// tlsCase starts the plugin with a certificate, as the server does, and calls it with
// that certificate, with another one, with none and without TLS.
func tlsCase(c *check) {
	if c.target.isRemote() {
		remoteTLSCase(c)
		return
	}
	pair, text, err := hostcert.New()
	c.no(err, "make a certificate")
	stranger, _, err := hostcert.New()
	c.no(err, "make a certificate")
	p := c.startWith(text)
	if p.Certificate == "" {
		c.fail("with %s in its environment, the sixth part of its handshake line is no certificate", hostcert.EnvKey)
	}
	roots := c.roots(p)
	c.no(c.infoOver(p, tlsFor(&pair, roots)), "Info with the certificate of the host")
	for who, creds := range map[string]credentials.TransportCredentials{
		"with another certificate than that of its host": tlsFor(&stranger, roots),
		"without a certificate":                          tlsFor(nil, roots),
		"without TLS":                                    insecure.NewCredentials(),
	} {
		if c.infoOver(p, creds) == nil {
			c.fail("it serves a client %s: it must trust the certificate in %s alone", who, hostcert.EnvKey)
		}
	}
}

// roots returns a pool of the certificate in the handshake line.
func (c *check) roots(p *candidate.Process) *x509.CertPool {
	der, err := base64.RawStdEncoding.DecodeString(p.Certificate)
	c.no(err, "read the certificate in the handshake line, which is DER in base64 without padding")
	cert, err := x509.ParseCertificate(der)
	c.no(err, "read the certificate in the handshake line")
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return roots
}

// tlsFor returns the settings of a host with a certificate, or with none.
func tlsFor(pair *tls.Certificate, roots *x509.CertPool) credentials.TransportCredentials {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: hostcert.ServerName}
	if pair != nil {
		config = hostcert.ClientConfig(*pair)
	}
	config.RootCAs = roots
	return credentials.NewTLS(config)
}

// infoOver calls Info over a connection of its own.
func (c *check) infoOver(p *candidate.Process, creds credentials.TransportCredentials) error {
	conn, err := p.Connect(creds)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := c.call(15 * time.Second)
	defer cancel()
	_, err = pluginv1.NewPluginServiceClient(conn).Info(ctx, &pluginv1.InfoRequest{HostName: "plugintest", ProtocolMinor: sdk.ProtocolMinor}, grpc.WaitForReady(false))
	return err
}

package candidate

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
)

// Remote is a plugin that the kit does not start. Its fields are those of the remote
// section of the server's config.
type Remote struct {
	// Address is host:port.
	Address string
	// CA, Cert and Key are PEM files: the authority of the plugin's certificate, and the
	// client's own certificate and key.
	CA, Cert, Key string
	// ServerName is the name in the plugin's certificate; "" is the host of Address.
	ServerName string
}

// Config returns the settings of the server's connection: TLS 1.3 with a certificate of
// both sides.
func (r Remote) Config() (*tls.Config, error) {
	text, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", r.CA)
	}
	pair, err := tls.LoadX509KeyPair(r.Cert, r.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: authorities, Certificates: []tls.Certificate{pair}, ServerName: r.ServerName}, nil
}

// Dial returns the plugin with a connection of its own, which is established at the
// first call. Kill closes the connection only; the process has no id, no streams and no
// end that the kit could see.
func (r Remote) Dial() (*Process, error) {
	config, err := r.Config()
	if err != nil {
		return nil, err
	}
	p := &Process{target: "passthrough:///" + r.Address, exited: make(chan struct{})}
	p.Conn, err = p.Connect(credentials.NewTLS(config))
	return p, err
}

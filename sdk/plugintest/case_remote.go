package plugintest

import (
	"crypto/tls"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/guidonhq/guidon/sdk/hostcert"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

// remoteCases are those of a plugin that serves several servers, for longer than any of
// them runs.
var remoteCases = group{"remote", []oneCase{
	{"begins again for a server that was restarted", generationsCase},
	{"works on after the connection was lost", reconnectCase},
}}

// remoteTLSCase calls a remote plugin with the certificate of its operator, with one of
// another authority, with none and without TLS.
func remoteTLSCase(c *check) {
	config, err := candidate.Remote(c.target.Remote).Config()
	c.no(err, "read the certificates")
	stranger, _, err := hostcert.New()
	c.no(err, "make a certificate")
	p := c.process()
	c.no(c.infoOver(p, credentials.NewTLS(config)), "Info with the certificate of the server")
	none, other := config.Clone(), config.Clone()
	none.Certificates, other.Certificates = nil, nil
	// A client leaves out a certificate that the plugin does not ask for, unless forced.
	other.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil }
	for who, creds := range map[string]credentials.TransportCredentials{
		"with a certificate of another authority": credentials.NewTLS(other),
		"without a certificate":                   credentials.NewTLS(none),
		"without TLS":                             insecure.NewCredentials(),
	} {
		if c.infoOver(p, creds) == nil {
			c.fail("it serves a client %s: every network peer could read and write through it", who)
		}
	}
}

// generationsCase leaves an instance with a high generation, as a server that was killed
// does, and begins with the first one again.
func generationsCase(c *check) {
	const id = "restarted"
	defer c.closeInstance(id)
	if out := c.configure(id, 7, c.target.Config); !out.GetAccepted() {
		c.fail("Configure refuses the config: %s %s", diagnostics(out.GetDiagnostics()), failed(out.GetError()))
	}
	c.hangUp()
	c.closeInstance(id)
	if out := c.configure(id, 1, c.target.Config); !out.GetAccepted() {
		c.fail("after Close, generation 1 is refused: %s %s", diagnostics(out.GetDiagnostics()), failed(out.GetError()))
	}
}

// reconnectCase loses the connection, and does the work over another one.
func reconnectCase(c *check) {
	c.needKind()
	c.works()
	c.hangUp()
	c.works()
}

// works opens the instance and does a little of the work of its kind.
func (c *check) works() {
	switch c.kind {
	case pluginv1.Kind_KIND_SINK:
		p := c.process()
		c.openSink(p, c.safe)
		b := c.batch(c.some(50))
		c.good(p, b, c.write(p, b))
		c.flush(p, sinkv1.FlushRequest_REASON_TIMER, b.last())
		if c.target.Received != nil {
			c.there(b, false)
		}
	case pluginv1.Kind_KIND_NOTIFIER:
		if r := c.notify(c.notification("the connection was lost"))[0]; r.GetOutcome() != notifyv1.NotifyResult_OUTCOME_DELIVERED {
			c.fail("it answers %s: %s", r.GetOutcome(), failed(r.GetError()))
		}
	case pluginv1.Kind_KIND_MATCHER:
		programs, values, pp, pv, at := c.square()
		c.match(programs, values, pp, pv, at)
	case pluginv1.Kind_KIND_UNSPECIFIED: // needKind has skipped
	}
}

package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// connectError explains why no broker answers, and names the setting to change. A broker
// that expects TLS, or other credentials, may close the connection without a reason.
func (l *Log) connectError(err error) error {
	why := "no broker answers; check the addresses and that the brokers run"
	var record tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		why = fmt.Sprintf("the brokers refuse the user %q or its password (sasl=%s)", l.target.User, l.target.Mechanism)
	case errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		why = fmt.Sprintf("the brokers do not take sasl=%s", l.target.Mechanism)
	case errors.As(err, &record):
		why = "this port speaks no TLS; use kafka://, or the port for TLS"
	case errors.As(err, &verification):
		why = "the certificate of the broker is not trusted; check ca_file and server_name"
	case errors.As(err, &dns):
		why = "the name of the broker is not known"
	case errors.As(err, &timeout) && timeout.Timeout() && l.target.TLS:
		why = "no broker answers; check the addresses and that this port speaks TLS"
	case strings.Contains(err.Error(), "tls alert record"): // the client has no error of its own for it
		why = "this port speaks TLS; use kafkas://, or the port without TLS"
	case strings.Contains(err.Error(), "'HTTP' in ascii"):
		why = "this is a server of HTTP and no broker; check the addresses"
	case errors.Is(err, io.EOF) && l.target.TLS && l.target.Mechanism == "":
		why = "the broker closes the connection; check that this port speaks TLS, or use kafka://, and cert_file if the brokers want a certificate"
	case errors.Is(err, io.EOF) && l.target.Mechanism != "":
		why = fmt.Sprintf("the broker closes the connection; check the user %q, its password, and tls", l.target.User)
	case errors.Is(err, io.EOF):
		why = "the broker closes the connection; check tls and sasl"
	}
	return fmt.Errorf("journal.url: connect to %v: %s: %w", l.target.Brokers, why, err)
}

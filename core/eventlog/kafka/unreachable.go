package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
)

// connectError returns the error of a start that no broker answers.
func (l *Log) connectError(err error) error {
	return fmt.Errorf("journal.url: connect to %v: %s: %w", l.target.Brokers, l.target.explain(err), err)
}

// explain says why no broker answers, and names the setting to change. A broker that
// expects TLS, or other credentials, may close the connection without a reason.
func (t *Target) explain(err error) string {
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	var record tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Sprintf("the brokers refuse the user %q or its password (sasl=%s)", t.User, t.Mechanism)
	case errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return fmt.Sprintf("the brokers do not take sasl=%s", t.Mechanism)
	case errors.As(err, &record):
		return "this port speaks no TLS; use kafka://, or the port for TLS"
	case errors.As(err, &verification):
		return "the certificate of the broker is not trusted; check ca_file and server_name"
	case errors.As(err, &dns):
		return "the name of the broker is not known"
	case errors.As(err, &timeout) && timeout.Timeout() && t.TLS:
		return "no broker answers; check the addresses and that this port speaks TLS"
	case strings.Contains(err.Error(), "tls alert record"): // the client has no error of its own for it
		return "this port speaks TLS; use kafkas://, or the port without TLS"
	case strings.Contains(err.Error(), "'HTTP' in ascii"):
		return "this is a server of HTTP and no broker; check the addresses"
	case closed && t.TLS && t.Mechanism == "":
		return "the broker closes the connection; check that this port speaks TLS, or use kafka://, and cert_file if the brokers want a certificate"
	case closed && t.Mechanism != "":
		return fmt.Sprintf("the broker closes the connection; check the user %q, its password, and tls", t.User)
	case closed:
		return "the broker closes the connection; check tls and sasl"
	}
	return "no broker answers; check the addresses and that the brokers run"
}

// ranOutOfTime reports whether err says only that something took too long or was given up.
func ranOutOfTime(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

package email

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// server is the SMTP server of a configuration. It has one connection for each message.
type server struct{ cfg Config }

// send delivers a message to the SMTP server, within the timeout of the configuration.
func (s server) send(ctx context.Context, m Message) error {
	msg, err := s.compose(m)
	if err != nil {
		return permanent{err}
	}
	return s.connected(ctx, func(c *gomail.Client, client *smtp.Client) error { return c.SendWithSMTPClient(client, msg) })
}

// Check connects to the SMTP server of cfg and signs in. It sends no message.
func Check(ctx context.Context, cfg Config) error {
	return server{cfg}.connected(ctx, func(c *gomail.Client, client *smtp.Client) error { return client.Noop() })
}

// connected runs fn with a connection that has said hello and has signed in. Every error of
// the connection and its time ends with it.
func (s server) connected(ctx context.Context, fn func(*gomail.Client, *smtp.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	d := &dialer{tls: s.cfg.TLS == TLS, address: net.JoinHostPort(s.cfg.Host, strconv.Itoa(s.cfg.port()))}
	defer d.close()
	c, err := s.client(d)
	if err != nil {
		return err
	}
	client, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return s.explain(ctx, err)
	}
	if err := fn(c, client); err != nil {
		return s.explain(ctx, err)
	}
	_ = client.Quit() // the message was accepted
	return nil
}

// explain names the server in an error, and marks a refusal as permanent.
func (s server) explain(ctx context.Context, err error) error {
	named := func(text string) error {
		return fmt.Errorf("SMTP server %s port %d: %s", s.cfg.Host, s.cfg.port(), text)
	}
	var answer *textproto.Error
	var sent *gomail.SendError
	if errors.As(err, &answer) && answer.Code >= 500 || errors.As(err, &sent) && sent.ErrorCode() >= 500 {
		return permanent{named(s.redacted(err.Error()))}
	}
	// The deadline of the connection may be seen a moment before the end of ctx.
	if end, _ := ctx.Deadline(); ctx.Err() != nil || !time.Now().Before(end) {
		return named(fmt.Sprintf("no answer within %s", s.cfg.Timeout))
	}
	return named(s.redacted(err.Error()))
}

// redacted removes the password from an answer of the SMTP server, which may repeat it.
func (s server) redacted(text string) string {
	if s.cfg.Password == "" {
		return text
	}
	return strings.ReplaceAll(text, s.cfg.Password, "***")
}

// permanent is an error that another attempt does not change.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

func (s server) client(d *dialer) (*gomail.Client, error) {
	config := &tls.Config{ServerName: s.cfg.Host, MinVersion: tls.VersionTLS12}
	if s.cfg.CAFile != "" {
		pem, err := os.ReadFile(s.cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("email.ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("email.ca_file: %s has no certificate", s.cfg.CAFile)
		}
	}
	d.config = config
	options := []gomail.Option{
		gomail.WithPort(s.cfg.port()), gomail.WithTimeout(s.cfg.Timeout), gomail.WithTLSConfig(config), gomail.WithDialContextFunc(d.dial),
	}
	switch s.cfg.TLS {
	case TLS: // the dialer encrypts, and the client knows it by WithSSL
		options = append(options, gomail.WithSSL())
	case NoTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if s.cfg.Username != "" {
		options = append(options, gomail.WithUsername(s.cfg.Username), gomail.WithPassword(s.cfg.Password), gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5))
	}
	return gomail.NewClient(s.cfg.Host, options...)
}

// compose builds the message. Addresses are parsed and the subject is one line, so no header
// can be added.
func (s server) compose(m Message) (*gomail.Msg, error) {
	from, err := mail.ParseAddress(s.cfg.From)
	if err != nil {
		return nil, fmt.Errorf("email.from: %w", err)
	}
	to, err := mail.ParseAddress(m.To)
	if err != nil || to.Address != m.To || strings.ContainsAny(m.To, "\r\n\x00") {
		return nil, errors.New("the address of the recipient is invalid")
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(from)
	msg.ToMailAddress(&mail.Address{Address: m.To})
	msg.Subject(strings.Join(strings.Fields(m.Subject), " "))
	msg.SetDate()
	msg.SetMessageIDWithValue(m.id + "@" + from.Address[strings.LastIndexByte(from.Address, '@')+1:])
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	return msg, nil
}

// dialer opens the connection of one message and closes it.
type dialer struct {
	address string
	tls     bool
	config  *tls.Config
	conn    net.Conn
}

// dial connects to the address of the dialer. The deadline of the connection is that of ctx,
// whatever the client sets: a slow server could extend it with each answer.
func (d *dialer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, d.address)
	if err != nil {
		return nil, err
	}
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	d.conn = conn
	if !d.tls {
		return fixedDeadline{conn}, nil
	}
	secure := tls.Client(fixedDeadline{conn}, d.config) // the client knows encryption by this type
	return secure, secure.HandshakeContext(ctx)
}

func (d *dialer) close() {
	if d.conn != nil {
		_ = d.conn.Close()
	}
}

// fixedDeadline is a connection whose deadline stays.
type fixedDeadline struct{ net.Conn }

func (fixedDeadline) SetDeadline(time.Time) error      { return nil }
func (fixedDeadline) SetReadDeadline(time.Time) error  { return nil }
func (fixedDeadline) SetWriteDeadline(time.Time) error { return nil }

// Package emailtest provides an SMTP server for tests that records accepted messages.
package emailtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// User and Password sign in at a Server.
const (
	User     = "ada"
	Password = "right-password"
)

// Options changes a Server.
type Options struct {
	Port     int  // 0: a free one
	STARTTLS bool // offers it
	TLS      bool // from the first byte
	// Refuse is the answer to a recipient; nil accepts it.
	Refuse func(address string) error
}

// Server is an SMTP server on 127.0.0.1.
type Server struct {
	Port   int
	CAFile string // of its certificate; "" without TLS

	options  Options
	server   *smtp.Server
	listener net.Listener
	mu       sync.Mutex
	mail     []Mail
	arrived  chan struct{} // closed at the next message
}

// Mail is an accepted message.
type Mail struct {
	From   string
	To     []string
	Header mail.Header
	Text   string
	HTML   string
	Raw    []byte
}

// Listen returns a running Server, which ends with the test.
func Listen(t testing.TB, o Options) *Server {
	t.Helper()
	l, err := net.Listen("tcp", (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: o.Port}).String())
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Port: l.Addr().(*net.TCPAddr).Port, options: o, arrived: make(chan struct{})}
	s.server = smtp.NewServer(s)
	s.server.Domain, s.server.AllowInsecureAuth, s.server.EnableSMTPUTF8 = "localhost", true, true
	if o.STARTTLS || o.TLS {
		config := s.certificate(t)
		if s.server.TLSConfig = config; o.TLS {
			l = tls.NewListener(l, config)
		}
	}
	s.listener = l
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.server.Serve(l)
	}()
	t.Cleanup(func() {
		s.Close()
		<-ended
	})
	return s
}

// Close ends the server and its connections.
func (s *Server) Close() {
	_ = s.listener.Close() // the server knows it from Serve on only
	_ = s.server.Close()
}

// Wait returns the messages once there are n.
func (s *Server) Wait(t testing.TB, n int) []Mail {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		s.mu.Lock()
		all, arrived := s.mail, s.arrived
		s.mu.Unlock()
		if len(all) >= n {
			return all
		}
		select {
		case <-arrived:
		case <-limit:
			t.Fatalf("%d of %d messages arrived", len(all), n)
		}
	}
}

// Count returns the number of messages.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mail)
}

// NewSession implements smtp.Backend.
func (s *Server) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }

type session struct {
	server *Server
	now    Mail
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != User || password != Password {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "wrong password " + password}
		}
		return nil
	}), nil
}

func (s *session) Reset()        { s.now = Mail{} }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.now.From = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.now.To = append(s.now.To, to)
	if s.server.options.Refuse != nil {
		return s.server.options.Refuse(to)
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.now.Raw = data
	if err := s.now.parse(); err != nil {
		return &smtp.SMTPError{Code: 554, Message: err.Error()}
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mail = append(s.server.mail, s.now)
	close(s.server.arrived)
	s.server.arrived = make(chan struct{})
	return nil
}

// parse reads the header and both forms of the message.
func (m *Mail) parse() error {
	msg, err := mail.ReadMessage(bytes.NewReader(m.Raw))
	if err != nil {
		return err
	}
	m.Header = msg.Header
	_, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	for r := multipart.NewReader(msg.Body, params["boundary"]); ; {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			return err
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			m.HTML = string(text)
		} else {
			m.Text = string(text)
		}
	}
}

// Subject returns the decoded subject.
func (m *Mail) Subject() string {
	s, _ := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	return s
}

// Link returns the first link of the text; "" for none.
func (m *Mail) Link() string {
	for word := range strings.FieldsSeq(m.Text) {
		if strings.HasPrefix(word, "http") {
			return word
		}
	}
	return ""
}

// certificate makes a certificate for 127.0.0.1 and writes it to CAFile.
func (s *Server) certificate(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(s.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

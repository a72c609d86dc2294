package email_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/guidonhq/guidon/plugins/notifier/email"
	. "github.com/guidonhq/guidon/plugins/notifier/internal/posttest"
	"github.com/guidonhq/guidon/sdk"
)

// server is a mail server that keeps what it is handed.
type server struct {
	port   int
	refuse error // answer to RCPT

	mu   sync.Mutex
	mail []envelope
}

type envelope struct {
	from string
	to   []string
	data []byte
}

func listen(t *testing.T, refuse error, secure bool) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{port: l.Addr().(*net.TCPAddr).Port, refuse: refuse}
	srv := smtp.NewServer(s)
	srv.Domain, srv.AllowInsecureAuth = "localhost", true
	if secure {
		srv.TLSConfig = selfSigned(t)
	}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return s
}

func (s *server) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }

type session struct {
	server *server
	now    envelope
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "ada" || password != "right" {
			return &smtp.SMTPError{Code: 535, Message: "wrong password"}
		}
		return nil
	}), nil
}
func (s *session) Reset()        { s.now = envelope{} }
func (s *session) Logout() error { return nil }
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.now.from = from
	return nil
}
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.now.to = append(s.now.to, to)
	return s.server.refuse
}
func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	s.now.data = data
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mail = append(s.server.mail, s.now)
	return err
}

// received is the i-th mail, parsed.
func (s *server) received(t *testing.T, i int) (envelope, *mail.Message, map[string]string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.mail) {
		t.Fatalf("%d mails", len(s.mail))
	}
	msg, err := mail.ReadMessage(bytes.NewReader(s.mail[i].data))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	for r := multipart.NewReader(msg.Body, params["boundary"]); ; {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		bodies[kind] = strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	return s.mail[i], msg, bodies
}

func opened(t *testing.T, port int, settings string) *email.Notifier {
	t.Helper()
	n := email.New()
	Open(t, n, fmt.Sprintf(`{"host": "127.0.0.1", "port": %d, "tls": "none", "timeout": "5s", "from": "Guidon <guidon@example.com>", "to": ["Ada <ada@example.com>", "grace@example.org"]%s}`, port, settings))
	return n
}

func TestAMessageIsAMail(t *testing.T) {
	t.Parallel()
	s := listen(t, nil, false)
	n := opened(t, s.port, `, "user": "ada", "password": "right"`)
	m := Message(Link("signup", "https://h.example/?a=1&b=2"), Text(" was triggered by "), Bold("Ädä"))
	m.Suppressed = 2
	r, err := n.Notify(t.Context(), m)
	if err != nil || r.Outcome != sdk.Delivered || !strings.Contains(r.MessageID, "n-1@example.com") {
		t.Fatalf("%+v, %v", r, err)
	}
	sent, msg, bodies := s.received(t, 0)
	if sent.from != "guidon@example.com" || fmt.Sprint(sent.to) != "[ada@example.com grace@example.org]" {
		t.Errorf("envelope %+v", sent)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil || subject != "signup: signup was triggered by Ädä (and 2 more)" {
		t.Errorf("subject %q", subject)
	}
	if bodies["text/plain"] != "signup was triggered by Ädä (and 2 more)\n" ||
		bodies["text/html"] != `<p><a href="https://h.example/?a=1&amp;b=2">signup</a> was triggered by <b>Ädä</b> (and 2 more)</p>`+"\n" {
		t.Errorf("%q", bodies)
	}
	if msg.Header.Get("Message-Id") != "<n-1@example.com>" || msg.Header.Get("Auto-Submitted") != "auto-generated" {
		t.Errorf("%v", msg.Header)
	}
	if err := n.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNothingInAnEventIsAHeaderOrMarkup(t *testing.T) {
	t.Parallel()
	s := listen(t, nil, false)
	n := opened(t, s.port, "")
	for i, text := range Hostile {
		m := Message(Text(text))
		m.Action.Name, m.ID = text, text
		if _, err := n.Notify(t.Context(), m); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		sent, msg, bodies := s.received(t, i)
		if len(sent.to) != 2 || msg.Header.Get("Bcc") != "" || strings.ContainsAny(msg.Header.Get("Subject"), "\r\n") {
			t.Errorf("%q: %v %v", text, sent.to, msg.Header)
		}
		if html := bodies["text/html"]; strings.Contains(html, "<script") || strings.Contains(html, "<!") || strings.Contains(html, "<@") {
			t.Errorf("%q: %s", text, html)
		}
	}
}

func TestARecipientOfAnActionMustBeAllowed(t *testing.T) {
	t.Parallel()
	s := listen(t, nil, false)
	n := opened(t, s.port, `, "allow_domains": ["Friends.example"]`)
	for to, ok := range map[string]bool{
		"eve@example.com": true, "Eve <eve@friends.example>": true, "eve@evil.example": false, "x": false,
		"eve@example.com, eve@evil.example": false, "eve@example.com\r\nBcc: x@evil.example": false,
	} {
		m := Message(Text("hello"))
		m.Destination = to
		_, err := n.Notify(t.Context(), m)
		if class, _ := Class(err); (err == nil) != ok || !ok && class != sdk.ClassPermanent {
			t.Errorf("%q: %v", to, err)
		}
	}
	if len(s.mail) != 2 {
		t.Errorf("%d mails", len(s.mail))
	}
}

func TestAnswersSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refuse error
		class  sdk.Class
	}{
		"greylisted":   {&smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}, sdk.ClassTransient},
		"no such user": {&smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "nobody"}, sdk.ClassPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := opened(t, listen(t, tt.refuse, false).port, "").Notify(t.Context(), Message(Text("hello")))
			if class, _ := Class(err); class != tt.class {
				t.Errorf("%v: %v", class, err)
			}
		})
	}
	_, err := opened(t, listen(t, nil, false).port, `, "user": "ada", "password": "wrong-secret"`).Notify(t.Context(), Message(Text("hello")))
	if class, _ := Class(err); class != sdk.ClassConfig || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("a wrong password: %v %v", class, err)
	}
	_, err = opened(t, 1, "").Notify(t.Context(), Message(Text("hello")))
	if class, _ := Class(err); class != sdk.ClassTransient {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestAServerThatHangsIsTriedAgain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	n := email.New()
	Open(t, n, fmt.Sprintf(`{"host": "127.0.0.1", "port": %d, "tls": "none", "timeout": "1s", "from": "a@b.c", "to": ["a@b.c"]}`, l.Addr().(*net.TCPAddr).Port))
	_, err = n.Notify(t.Context(), Message(Text("hello")))
	if class, _ := Class(err); class != sdk.ClassTransient {
		t.Errorf("%v", err)
	}
}

// A server with an untrusted certificate is refused.
func TestEncryptionIsRequired(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{true, false} {
		s := listen(t, nil, secure)
		n := email.New()
		Open(t, n, fmt.Sprintf(`{"host": "127.0.0.1", "port": %d, "timeout": "5s", "from": "a@b.c", "to": ["a@b.c"]}`, s.port))
		if _, err := n.Notify(t.Context(), Message(Text("hello"))); err == nil || len(s.mail) != 0 {
			t.Errorf("with STARTTLS %v: %v, %d mails", secure, err, len(s.mail))
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	t.Parallel()
	for config, pointer := range map[string]string{
		`{"host": "h", "from": "x", "to": ["a@b.c"]}`:                                                  "/from",
		`{"host": "h", "from": "a@b.c", "to": []}`:                                                     "/to",
		`{"host": "h", "from": "a@b.c", "to": ["a@b.c", "x"]}`:                                         "/to/1",
		`{"host": "h", "from": "a@b.c", "to": ["a@b.c"], "user": "u", "password": "p", "tls": "none"}`: "/tls",
	} {
		n := email.New()
		if err := sdk.DecodeConfig([]byte(config), n.Config()); err != nil {
			t.Fatal(err)
		}
		if err := n.Validate(); err == nil || sdk.AsError(errors.Unwrap(joined{err})).Pointer != pointer {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// joined unwraps to the first of several errors.
type joined struct{ error }

func (j joined) Unwrap() error {
	if many, ok := j.error.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()[0]
	}
	return j.error
}

func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

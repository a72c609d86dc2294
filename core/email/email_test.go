package email_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/email/emailtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const site = "https://flags.example.com"

// config is for the server s.
func config(s *emailtest.Server) email.Config {
	c := email.DefaultConfig()
	c.Host, c.Port, c.From, c.TLS = "127.0.0.1", s.Port, "Guidon <guidon@example.com>", email.NoTLS
	c.CAFile = s.CAFile
	return c
}

// newSender returns a running Sender and its log.
func newSender(t *testing.T, c email.Config) (*email.Sender, *observer.ObservedLogs) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	core, lines := observer.New(zap.DebugLevel)
	s, err := email.New(c, site, zap.New(core), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Start(t.Context())
	t.Cleanup(func() { stop(s) })
	return s, lines
}

func stop(s *email.Sender) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Stop(ctx)
}

// queue queues a message and returns where its result appears.
func queue(t *testing.T, s *email.Sender, m email.Message) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	err := s.Queue(email.Job{
		Kind: email.KindReset,
		Make: func(context.Context) (email.Message, error) { return m, nil },
		Done: func(_ context.Context, err error) { result <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func wait(t *testing.T, result <-chan error) error {
	t.Helper()
	select {
	case err := <-result:
		return err
	case <-time.After(time.Minute):
		t.Fatal("no result")
		return nil
	}
}

func reset(to string) email.Message {
	return email.Reset(to, site+"/reset-password#token=gdl_1", time.Unix(1_800_000_000, 0))
}

func TestModesOfTLS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server emailtest.Options
		mode   string
		login  bool
	}{
		"starttls with a sign-in": {emailtest.Options{STARTTLS: true}, email.STARTTLS, true},
		"tls with a sign-in":      {emailtest.Options{TLS: true}, email.TLS, true},
		"none":                    {emailtest.Options{}, email.NoTLS, false},
		"none with a sign-in":     {emailtest.Options{}, email.NoTLS, true}, // on this machine only
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := emailtest.Listen(t, c.server)
			cfg := config(server)
			cfg.TLS = c.mode
			if c.login {
				cfg.Username, cfg.Password = emailtest.User, emailtest.Password
			}
			if err := email.Check(t.Context(), cfg); err != nil {
				t.Errorf("check: %v", err)
			}
			s, lines := newSender(t, cfg)
			if err := wait(t, queue(t, s, reset("grace@example.com"))); err != nil {
				t.Fatal(err)
			}
			m := server.Wait(t, 1)[0]
			if m.From != "guidon@example.com" || len(m.To) != 1 || m.To[0] != "grace@example.com" || m.Subject() != "Choose a new password for Guidon" {
				t.Errorf("from %s to %s: %s", m.From, m.To, m.Subject())
			}
			if m.Link() != site+"/reset-password#token=gdl_1" || !strings.Contains(m.HTML, `href="`+m.Link()+`"`) || !strings.Contains(m.Text, "15 January 2027, 08:00 UTC") {
				t.Errorf("message %s\n%s", m.Text, m.HTML)
			}
			if lines.FilterMessage("e-mail sent").Len() != 1 || strings.Contains(m.HTML, "src=") {
				t.Errorf("log %v", lines.All())
			}
		})
	}
}

// A server that does not offer what the mode needs gets neither password nor message.
func TestEncryptionIsRequired(t *testing.T) {
	t.Parallel()
	plain := emailtest.Listen(t, emailtest.Options{})
	cfg := config(plain)
	cfg.TLS, cfg.Username, cfg.Password = email.STARTTLS, emailtest.User, emailtest.Password
	if err := email.Check(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("without STARTTLS: %v", err)
	}
	secure := emailtest.Listen(t, emailtest.Options{STARTTLS: true})
	cfg.Port, cfg.CAFile = secure.Port, ""
	if err := email.Check(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with an unknown authority: %v", err)
	}
}

// A refusal is final and in the log, without the password.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{STARTTLS: true, Refuse: func(address string) error {
		if strings.HasPrefix(address, "gone") {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
		}
		return nil
	}})
	cfg := config(server)
	cfg.TLS, cfg.Username, cfg.Password = email.STARTTLS, emailtest.User, "wrong-secret"
	s, lines := newSender(t, cfg)
	err := wait(t, queue(t, s, reset("grace@example.com")))
	if err == nil || !strings.Contains(err.Error(), "535") || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("with a wrong password: %v", err)
	}
	if lines.FilterMessage("e-mail not sent").Len() != 1 {
		t.Errorf("log %v", lines.All())
	}
	cfg.Password = emailtest.Password
	s, _ = newSender(t, cfg)
	if err := wait(t, queue(t, s, reset("gone@example.com"))); err == nil || !strings.Contains(err.Error(), "no such mailbox") {
		t.Errorf("refused recipient: %v", err)
	}
	if n := server.Count(); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// A message that the server refuses for now, or that it cannot take because it is away, is
// sent later, once.
func TestAServerComesBack(t *testing.T) {
	t.Parallel()
	first := emailtest.Listen(t, emailtest.Options{})
	cfg := config(first)
	first.Close()
	s, lines := newSender(t, cfg)
	result := queue(t, s, reset("grace@example.com"))
	until(t, func() bool { return lines.FilterMessage("e-mail attempt failed; retrying").Len() > 0 })
	second := emailtest.Listen(t, emailtest.Options{Port: cfg.Port})
	if err := wait(t, result); err != nil {
		t.Fatal(err)
	}
	if n := len(second.Wait(t, 1)); n != 1 {
		t.Errorf("%d messages", n)
	}

	refused := 0
	busy := emailtest.Listen(t, emailtest.Options{Refuse: func(string) error {
		if refused++; refused == 1 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}
		return nil
	}})
	s, _ = newSender(t, config(busy))
	if err := wait(t, queue(t, s, reset("grace@example.com"))); err != nil {
		t.Errorf("after a refusal for now: %v", err)
	}
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not reached")
		}
	}
}

// A server that accepts connections and says nothing costs an attempt its timeout, and Queue
// and Stop nothing.
func TestASlowServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	cfg := config(&emailtest.Server{Port: l.Addr().(*net.TCPAddr).Port})
	cfg.Timeout = time.Second
	s, lines := newSender(t, cfg)
	queued, result := make(chan struct{}), make(chan error, 1)
	if err := s.Queue(email.Job{
		Kind: email.KindReset,
		Make: func(context.Context) (email.Message, error) {
			<-queued // Queue returns before the attempt
			return reset("grace@example.com"), nil
		},
		Done: func(_ context.Context, err error) { result <- err },
	}); err != nil {
		t.Fatal(err)
	}
	close(queued)
	until(t, func() bool { return lines.FilterMessage("e-mail attempt failed; retrying").Len() > 0 })
	if text := lines.FilterMessage("e-mail attempt failed; retrying").All()[0].ContextMap()["error"].(string); !strings.Contains(text, "no answer within 1s") {
		t.Errorf("error %s", text)
	}
	stop(s)
	if err := wait(t, result); err == nil {
		t.Error("sent")
	}
	if err := s.Queue(email.Job{Kind: email.KindReset}); !errors.Is(err, email.ErrFull) {
		t.Errorf("after Stop: %v", err)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := newSender(t, config(emailtest.Listen(t, emailtest.Options{})))
	block := make(chan struct{})
	var err error
	n := 0
	for ; n < 2000 && err == nil; n++ {
		err = s.Queue(email.Job{Kind: email.KindReset, Make: func(ctx context.Context) (email.Message, error) {
			<-block
			return email.Message{}, nil
		}})
	}
	close(block)
	if !errors.Is(err, email.ErrFull) || n != 1001 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestWithoutAServer(t *testing.T) {
	t.Parallel()
	s, _ := newSender(t, email.DefaultConfig())
	if err := s.Queue(email.Job{}); !errors.Is(err, email.ErrOff) || s.Enabled() || (*email.Sender)(nil).Enabled() {
		t.Errorf("queue: %v", err)
	}
}

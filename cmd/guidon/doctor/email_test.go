package doctor

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/email/emailtest"
)

// The check of the SMTP server connects and signs in; it sends nothing and shows no password.
func TestCheckEmail(t *testing.T) {
	t.Parallel()
	cfg := app.DefaultConfig()
	if out := checkEmail(t.Context(), cfg); out != nil {
		t.Errorf("without e-mail: %+v", out)
	}
	server := emailtest.Listen(t, emailtest.Options{STARTTLS: true})
	cfg.Email = email.Config{
		Host: "127.0.0.1", Port: server.Port, TLS: email.STARTTLS, CAFile: server.CAFile, From: "guidon@example.com", Timeout: cfg.Email.Timeout,
		Username: emailtest.User, Password: emailtest.Password,
	}
	if out := checkEmail(t.Context(), cfg); len(out) != 1 || out[0].State != OK {
		t.Errorf("with a server: %+v", out)
	}
	cfg.Email.Password = "wrong-secret"
	if out := checkEmail(t.Context(), cfg); len(out) != 1 || out[0].State != Fail || !strings.Contains(out[0].Found, "535") || strings.Contains(out[0].Found, "wrong-secret") {
		t.Errorf("with a wrong password: %+v", out)
	}
	server.Close()
	if out := checkEmail(t.Context(), cfg); len(out) != 1 || out[0].State != Fail || !strings.Contains(out[0].Found, "refused") {
		t.Errorf("without a server: %+v", out)
	}
	if server.Count() != 0 {
		t.Error("a message was sent")
	}
}

package email_test

import (
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/email/emailtest"
)

// Names of users add no header, no recipient, no markup and no link.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{})
	s, _ := newSender(t, config(server))
	hostile := []string{
		"Eve\r\nBcc: victim@example.com\r\n\r\nbody", "Eve\n.\nMAIL FROM:<eve@example.com>", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`,
		"{{.Link}}", "Eve\u202egnp.exe", "\x00\x1b[31m", strings.Repeat("long ", 200), "=?utf-8?q?=0d=0aBcc:_x@y?=", "Grüße 👋",
		"Win at https://evil.example", "www.evil.example", "see evil.example/now", "evil.example.", "mailto:eve@evil.example",
	}
	for _, name := range hostile {
		in := email.Invited{To: "grace@example.com", FirstName: name, Inviter: name, Organization: name, Link: site + "/invitation#id=1&token=phi_1", Expires: time.Now()}
		if err := wait(t, queue(t, s, email.Invitation(in))); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for i, m := range server.Wait(t, len(hostile)) {
		if len(m.To) != 1 || m.To[0] != "grace@example.com" || m.From != "guidon@example.com" {
			t.Errorf("%q: from %s to %s", hostile[i], m.From, m.To)
		}
		for _, key := range []string{"Bcc", "Cc", "Mail"} {
			if m.Header.Get(key) != "" {
				t.Errorf("%q has the header %s", hostile[i], key)
			}
		}
		if len(m.Header["To"]) != 1 || len(m.Header["Subject"]) != 1 || strings.ContainsAny(m.Subject(), "\r\n") || len(m.Subject()) > 200 {
			t.Errorf("%q: header %v", hostile[i], m.Header)
		}
		if n := strings.Count(m.HTML, "<"); n != strings.Count(email.Invitation(email.Invited{}).HTML, "<") {
			t.Errorf("%q: markup %s", hostile[i], m.HTML)
		}
		if m.Link() != site+"/invitation#id=1&token=phi_1" || strings.Contains(m.Text+m.HTML, "evil.example") {
			t.Errorf("%q: links %s", hostile[i], m.Text)
		}
		if strings.ContainsAny(m.Text, "\x00\x1b\u202e") {
			t.Errorf("%q: control characters %q", hostile[i], m.Text)
		}
	}
}

func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{})
	s, _ := newSender(t, config(server))
	for _, to := range []string{
		"grace@example.com\r\nBcc: eve@example.com", "grace@example.com, eve@example.com", "Eve <eve@example.com>", "grace@example.com>\r\nRCPT TO:<eve@example.com", "no address", "<eve@example.com>",
	} {
		if err := wait(t, queue(t, s, reset(to))); err == nil {
			t.Errorf("%q was sent", to)
		}
	}
	if n := server.Count(); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	valid := email.Config{Host: "smtp.example.com", TLS: email.STARTTLS, From: "Guidon <guidon@example.com>", Timeout: time.Second}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*email.Config){
		"tls must be":           func(c *email.Config) { c.TLS = "ssl" },
		"port must be":          func(c *email.Config) { c.Port = 70000 },
		"timeout must be":       func(c *email.Config) { c.Timeout = 0 },
		"host must be":          func(c *email.Config) { c.Host = "smtp.example.com:587" },
		"username and password": func(c *email.Config) { c.Username = "ada" },
		"tls: none":             func(c *email.Config) { c.TLS, c.Username, c.Password = email.NoTLS, "ada", "secret" },
		"from is empty":         func(c *email.Config) { c.From = "" },
		"from must look":        func(c *email.Config) { c.From = "guidon@example.com\r\nBcc: eve@example.com" },
	} {
		c := valid
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, err := range []error{valid.CheckLinks("", true), valid.CheckLinks(site, false)} {
		if err == nil || !strings.HasPrefix(err.Error(), "email.host needs ") {
			t.Errorf("links: %v", err)
		}
	}
	if err := valid.CheckLinks(site, true); err != nil {
		t.Error(err)
	}
	if err := email.DefaultConfig().CheckLinks("", false); err != nil {
		t.Error(err)
	}
}

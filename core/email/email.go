// Package email sends invitations and links for new passwords through an SMTP server.
//
// A request queues an e-mail and does not wait for it. The queue is bounded and in the memory
// of the node: messages contain tokens. The database stores only their hashes, and an outbox
// would copy the tokens into backups and replicas. So an e-mail is lost if the node crashes
// before the SMTP server accepts it. The link of an invitation is also in the answer to its
// creation, and a person asks for a new password again.
//
// A failed attempt is retried with backoff until the job is too old (Job.Lifetime). A refusal
// by the SMTP server (5xx) is final. A retry may deliver an e-mail twice, if the connection
// broke after the SMTP server had accepted the message. Each e-mail that is given up is a line
// "e-mail not sent" in the log and counts in guidon_emails_total.
//
// Messages are plain text with an HTML form of the same words, without pictures or other
// external resources. Names in them come from users: control characters are removed, the HTML
// is escaped, and names that look like links are left out.
package email

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"
)

// Modes of TLS.
const (
	STARTTLS = "starttls" // required: the attempt fails without it
	TLS      = "tls"      // from the first byte
	NoTLS    = "none"
)

// Config names the SMTP server.
type Config struct {
	// Host is the SMTP server; empty: the server sends no e-mail.
	Host string `koanf:"host"`
	// Port of the SMTP server; 0: 587, 465 with tls, 25 with none.
	Port int `koanf:"port"`
	// TLS is STARTTLS, TLS or NoTLS.
	TLS string `koanf:"tls"`
	// CAFile has certificates of authorities in PEM, in place of those of the system.
	CAFile string `koanf:"ca_file"`
	// Username and Password sign in at the SMTP server; empty: no sign-in.
	Username string `koanf:"username"`
	Password string `koanf:"password"`
	// From is the sender, such as Guidon <guidon@example.com>.
	From string `koanf:"from"`
	// Timeout bounds an attempt, from the connection to the answer.
	Timeout time.Duration `koanf:"timeout"`
}

// DefaultConfig returns a Config that sends no e-mail.
func DefaultConfig() Config { return Config{TLS: STARTTLS, Timeout: 20 * time.Second} }

// Enabled reports whether the server sends e-mail.
func (c Config) Enabled() bool { return c.Host != "" }

// port returns the port of the SMTP server.
func (c Config) port() int {
	switch {
	case c.Port != 0:
		return c.Port
	case c.TLS == TLS:
		return 465
	case c.TLS == NoTLS:
		return 25
	}
	return 587
}

// Validate returns an error for an invalid setting.
func (c Config) Validate() error {
	switch {
	case c.TLS != STARTTLS && c.TLS != TLS && c.TLS != NoTLS:
		return fmt.Errorf("tls must be starttls, tls or none, got %q", c.TLS)
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("port must be between 0 and 65535, got %d", c.Port)
	case c.Timeout < time.Second || c.Timeout > 5*time.Minute:
		return fmt.Errorf("timeout must be between 1s and 5m, got %s", c.Timeout)
	case !c.Enabled():
		return nil
	case strings.ContainsAny(c.Host, ":/ \r\n") && !isIPv6(c.Host):
		return fmt.Errorf("host must be a name or an address without a port, such as smtp.example.com, got %q: the port is email.port", c.Host)
	case (c.Username == "") != (c.Password == ""):
		return errors.New("username and password must be set together")
	case c.TLS == NoTLS && c.Username != "" && !isLocal(c.Host):
		return errors.New("tls: none would send email.password in clear text: use starttls or tls")
	case c.From == "":
		return errors.New("from is empty: it is the sender, such as Guidon <guidon@example.com>")
	}
	if _, err := mail.ParseAddress(c.From); err != nil {
		return fmt.Errorf("from must look like Guidon <guidon@example.com>, got %q", c.From)
	}
	return nil
}

// CheckLinks fails if the server sends e-mail but has no pages that links can open. site is
// http.site_url, or http.console_url with an address of the console. The address of a request
// is not used for links: its client chooses it.
func (c Config) CheckLinks(site string, console bool) error {
	switch {
	case !c.Enabled():
		return nil
	case site == "":
		return errors.New("email.host needs http.site_url (http.console_url with http.console_address): it is the address in the links of e-mails")
	case !console:
		return errors.New("email.host needs console.enabled: the links of e-mails open its pages")
	}
	return nil
}

func isIPv6(host string) bool {
	return strings.Count(host, ":") > 1 && !strings.ContainsAny(host, "/[] ")
}

func isLocal(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

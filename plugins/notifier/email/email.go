// Package email is a notifier that sends mail.
//
// Nothing that stands in an event can add a header or a recipient: a subject is
// one line, addresses are parsed, and bodies are encoded. A message that is sent
// again has the same Message-ID, by which mail programs show it once.
package email

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/guidonhq/guidon/plugins/notifier/internal/post"
	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	Host         string        `json:"host" required:"true" doc:"Mail server to hand messages to."`
	Port         int           `json:"port" min:"1" max:"65535" doc:"Its port: 587, or 465 with tls: implicit."`
	TLS          string        `json:"tls" enum:"starttls|implicit|none" doc:"starttls and implicit insist on encryption; none is for a server on this machine."`
	User         string        `json:"user" doc:"User to log in as; without one there is no login."`
	Password     string        `json:"password" secret:"true" doc:"Password of the user."`
	From         string        `json:"from" required:"true" doc:"Sender: Guidon <guidon@example.com>."`
	To           []string      `json:"to" required:"true" doc:"Recipients. An action may name another whose domain is allowed."`
	AllowDomains []string      `json:"allow_domains" doc:"Domains of recipients that actions may name, beside those of to."`
	Timeout      time.Duration `json:"timeout" min:"1s" max:"2m" doc:"How long handing over a message may take."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "email", Version: "1.0.0",
		Summary:  "Sends mail through an SMTP server.",
		Notifier: func() sdk.Notifier { return New() },
	}
}

// Notifier sends through one mail server.
type Notifier struct{ cfg config }

var (
	_ sdk.Notifier   = (*Notifier)(nil)
	_ sdk.Configured = (*Notifier)(nil)
	_ sdk.Validator  = (*Notifier)(nil)
	_ sdk.Checker    = (*Notifier)(nil)
	_ sdk.Previewer  = (*Notifier)(nil)
)

// New returns a notifier that is not open, its config at the defaults.
func New() *Notifier {
	return &Notifier{cfg: config{Port: 587, TLS: "starttls", Timeout: 20 * time.Second}}
}

// Config is where the SDK puts the operator's config.
func (n *Notifier) Config() any { return &n.cfg }

// Validate checks the addresses.
func (n *Notifier) Validate() error {
	var errs []error
	if _, err := netmail.ParseAddress(n.cfg.From); err != nil {
		errs = append(errs, sdk.ConfigError("/from", fmt.Errorf("%q is not an address", n.cfg.From)))
	}
	if len(n.cfg.To) == 0 {
		errs = append(errs, sdk.ConfigError("/to", errors.New("name at least one recipient")))
	}
	for i, to := range n.cfg.To {
		if _, err := netmail.ParseAddress(to); err != nil {
			errs = append(errs, sdk.ConfigError(fmt.Sprintf("/to/%d", i), fmt.Errorf("%q is not an address", to)))
		}
	}
	if n.cfg.User != "" && n.cfg.TLS == "none" && !local(n.cfg.Host) {
		errs = append(errs, sdk.ConfigError("/tls", errors.New("a password is not sent without encryption")))
	}
	return errors.Join(errs...)
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Open gets ready; each message is handed over on a connection of its own.
func (n *Notifier) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	return sdk.NotifierProperties{MaxInFlight: 2, PerSecond: 5, Burst: 10, Formats: []string{sdk.FormatSegments}}, nil
}

// Close has nothing to let go of.
func (n *Notifier) Close(context.Context) error { return nil }

// client makes a client. The server is the operator's choice, so it may be
// anywhere.
func (n *Notifier) client() (*mail.Client, error) {
	opts := []mail.Option{
		mail.WithPort(n.cfg.Port), mail.WithTimeout(n.cfg.Timeout),
		mail.WithDialContextFunc(sdk.Dialer(sdk.HTTPOptions{AllowHosts: []string{n.cfg.Host}})),
	}
	switch n.cfg.TLS {
	case "implicit":
		opts = append(opts, mail.WithSSL())
	case "none":
		opts = append(opts, mail.WithTLSPolicy(mail.NoTLS))
	default:
		opts = append(opts, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if n.cfg.User != "" {
		kind := mail.SMTPAuthAutoDiscover
		if n.cfg.TLS == "none" { // on this machine: see Validate
			opts = append(opts, mail.WithSMTPAuthCustom(smtp.PlainAuth("", n.cfg.User, n.cfg.Password, n.cfg.Host, true)))
		} else {
			opts = append(opts, mail.WithSMTPAuth(kind), mail.WithUsername(n.cfg.User), mail.WithPassword(n.cfg.Password))
		}
	}
	return mail.NewClient(n.cfg.Host, opts...)
}

// Check connects and logs in.
func (n *Notifier) Check(ctx context.Context) error {
	c, err := n.client()
	if err != nil {
		return sdk.ConfigError("/host", err)
	}
	if err := c.DialWithContext(ctx); err != nil {
		return classify(err)
	}
	return classify(c.Close())
}

// content is what a mail contains, without its addresses.
type content struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
}

// Preview shows the content of the mail.
func (n *Notifier) Preview(_ context.Context, m *sdk.Notification) (sdk.Preview, error) {
	return post.Preview(content{Subject: subject(m), Text: post.Plain(m, maxText), HTML: page(m)})
}

// Notify hands the mail over. It is delivered when the server has taken it.
func (n *Notifier) Notify(ctx context.Context, m *sdk.Notification) (sdk.NotifyResult, error) {
	to := n.cfg.To
	if m.Destination != "" {
		if err := n.mayGoTo(m.Destination); err != nil {
			return sdk.NotifyResult{}, sdk.Permanent(err)
		}
		to = []string{m.Destination}
	}
	msg, err := n.compose(m, to)
	if err != nil {
		return sdk.NotifyResult{}, sdk.Permanent(err)
	}
	c, err := n.client()
	if err != nil {
		return sdk.NotifyResult{}, sdk.ConfigError("/host", err)
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	if err := c.DialAndSendWithContext(ctx, msg); err != nil {
		return sdk.NotifyResult{}, classify(err)
	}
	return m.Delivered(msg.GetMessageID()), nil
}

// mayGoTo refuses recipients that the operator has not allowed: otherwise
// every author of an action could send mail to any address.
func (n *Notifier) mayGoTo(address string) error {
	parsed, err := netmail.ParseAddress(address)
	if err != nil {
		return fmt.Errorf("%q is not an address", post.Cut(address, 100))
	}
	domain := domainOf(parsed.Address)
	if slices.ContainsFunc(n.cfg.AllowDomains, func(d string) bool { return strings.EqualFold(d, domain) }) {
		return nil
	}
	for _, to := range n.cfg.To {
		if known, err := netmail.ParseAddress(to); err == nil && domainOf(known.Address) == domain {
			return nil
		}
	}
	return fmt.Errorf("mail to %s is not allowed: name the domain in allow_domains", domain)
}

func domainOf(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}

func (n *Notifier) compose(m *sdk.Notification, to []string) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := errors.Join(msg.From(n.cfg.From), msg.To(to...)); err != nil {
		return nil, err
	}
	from, err := netmail.ParseAddress(n.cfg.From)
	if err != nil {
		return nil, err
	}
	msg.Subject(subject(m))
	msg.SetDate()
	msg.SetMessageIDWithValue(word(m.ID) + "@" + domainOf(from.Address))
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(mail.TypeTextPlain, post.Plain(m, maxText)+"\n")
	msg.AddAlternativeString(mail.TypeTextHTML, page(m))
	return msg, nil
}

// maxText is how much of a message is sent.
const maxText = 10_000

// maxSubject is how many characters a subject has.
const maxSubject = 150

func subject(m *sdk.Notification) string {
	return post.Cut(line(m.Action.Name+": "+post.Plain(m, maxSubject)), maxSubject)
}

// line makes one line of a text.
func line(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r == ' ' }), " ")
}

// word keeps of an id what may stand in a Message-ID.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, s)
}

func page(m *sdk.Notification) string {
	var out strings.Builder
	out.WriteString("<p>")
	for _, s := range post.Segments(m, maxText) {
		text := strings.ReplaceAll(html.EscapeString(s.Value), "\n", "<br>")
		switch {
		case s.Href != "":
			out.WriteString(`<a href="` + html.EscapeString(s.Href) + `">` + text + "</a>")
		case s.Kind == sdk.SegmentBold:
			out.WriteString("<b>" + text + "</b>")
		case s.Kind == sdk.SegmentCode:
			out.WriteString("<code>" + text + "</code>")
		default:
			out.WriteString(text)
		}
	}
	out.WriteString("</p>\n")
	return out.String()
}

// classify returns the error with the class that the host acts on: 4xx of SMTP is for the
// moment, 5xx for good, and a login that is refused is the config's fault.
func classify(err error) error {
	if err == nil {
		return nil
	}
	text := post.Cut(line(err.Error()), 300)
	if failed, ok := errors.AsType[*mail.SendError](err); ok {
		class := sdk.ClassPermanent
		if failed.IsTemp() || failed.ErrorCode() == 0 {
			class = sdk.ClassTransient
		}
		return sdk.Errorf(class, fmt.Sprintf("smtp_%d", failed.ErrorCode()), "%s", text).From(sdk.SourceDownstream)
	}
	if strings.Contains(text, "SMTP AUTH failed") || strings.Contains(text, "535 ") {
		e := sdk.Errorf(sdk.ClassConfig, "login", "%s", text).From(sdk.SourceDownstream)
		e.Pointer = "/user"
		return e
	}
	return sdk.Errorf(sdk.ClassTransient, "smtp", "%s", text).From(sdk.SourceDownstream)
}

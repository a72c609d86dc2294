// Package discord is a notifier that posts to a Discord webhook.
//
// What stands in an event is escaped, and no mention in a message reaches
// anybody: Discord is told to allow none. A URL that ends in /slack, as tools
// without a format for Discord need it, is posted to in Discord's own format.
package discord

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/plugins/notifier/internal/post"
	"github.com/guidonhq/guidon/sdk"
)

// config is what the operator may say; sample.yaml explains each.
type config struct {
	URL      string `json:"url" required:"true" secret:"true" doc:"Webhook, https://discord.com/api/webhooks/…"`
	Username string `json:"username" doc:"Name to post under instead of the webhook's."`
	post.Options
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "discord", Version: "1.0.0",
		Summary:  "Posts to a Discord webhook.",
		Notifier: func() sdk.Notifier { return New() },
	}
}

// Notifier posts to one webhook.
type Notifier struct {
	cfg    config
	client *http.Client
}

var (
	_ sdk.Notifier   = (*Notifier)(nil)
	_ sdk.Configured = (*Notifier)(nil)
	_ sdk.Validator  = (*Notifier)(nil)
	_ sdk.Previewer  = (*Notifier)(nil)
)

// New returns a notifier that is not open, its config at the defaults.
func New() *Notifier { return &Notifier{cfg: config{Options: post.Defaults()}} }

// Config is where the SDK puts the operator's config.
func (n *Notifier) Config() any { return &n.cfg }

// maxName is the longest name Discord takes.
const maxName = 80

// Validate checks the URL.
func (n *Notifier) Validate() error {
	if err := n.cfg.Options.URL(n.cfg.URL, ""); err != nil {
		return sdk.ConfigError("/url", err)
	}
	if len([]rune(n.cfg.Username)) > maxName {
		return sdk.ConfigError("/username", errors.New("a name has at most 80 characters"))
	}
	return nil
}

// maxContent is the longest message Discord takes, in characters; maxText
// leaves room for what escaping adds, and what is longer still is cut shorter.
const (
	maxContent = 2000
	maxText    = 1800
)

// Open gets ready. Discord takes about five messages in two seconds.
func (n *Notifier) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	n.client = n.cfg.Client()
	return sdk.NotifierProperties{
		MaxInFlight: 2, PerSecond: 2, Burst: 5, PerDestination: true, MaxTextBytes: maxContent, Formats: []string{sdk.FormatSegments},
	}, nil
}

// Close lets go of the connections.
func (n *Notifier) Close(context.Context) error {
	if n.client != nil {
		n.client.CloseIdleConnections()
	}
	return nil
}

// Preview shows the message as Discord would get it.
func (n *Notifier) Preview(_ context.Context, m *sdk.Notification) (sdk.Preview, error) {
	raw, err := json.Marshal(n.message(m))
	return sdk.Preview{Rendered: raw, MediaType: "application/json"}, err
}

// Notify posts the message and waits for it to be there.
func (n *Notifier) Notify(ctx context.Context, m *sdk.Notification) (sdk.NotifyResult, error) {
	to := n.cfg.URL
	if m.Destination != "" {
		if err := n.cfg.Options.URL(m.Destination, n.cfg.URL, "discord.com", "*.discord.com", "discordapp.com"); err != nil {
			return sdk.NotifyResult{}, sdk.Permanent(err)
		}
		to = m.Destination
	}
	to, err := target(to)
	if err != nil {
		return sdk.NotifyResult{}, sdk.ConfigError("/url", errors.New("this is not a URL"))
	}
	answer, err := post.JSON(ctx, n.client, to, nil, n.message(m))
	if err != nil {
		return sdk.NotifyResult{Rate: rate(answer.Header)}, post.Throttle(post.Own(m, err), post.Seconds(answer.Header.Get("X-RateLimit-Reset-After")))
	}
	var said struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(answer.Body, &said) // the id is nice to have
	result := m.Delivered(said.ID)
	result.Rate = rate(answer.Header)
	return result, nil
}

// target is the webhook's own address, asked to answer when the message is
// there and to say its id.
func target(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/slack")
	q := u.Query()
	q.Set("wait", "true")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// rate reads what Discord says about its limits with every answer.
func rate(h http.Header) *sdk.Rate {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after := post.Seconds(h.Get("X-RateLimit-Reset-After"))
	if err != nil || left < 0 {
		return nil
	}
	return &sdk.Rate{Remaining: left, ResetAfter: max(after, time.Millisecond), Scope: h.Get("X-RateLimit-Bucket")}
}

// message is what Discord is sent.
type message struct {
	Content  string   `json:"content"`
	Username string   `json:"username,omitempty"`
	Allowed  mentions `json:"allowed_mentions"`
	Flags    int      `json:"flags"`
}

// mentions lists whom a message may reach: nobody.
type mentions struct {
	Parse []string `json:"parse"`
}

// noEmbeds keeps Discord from fetching what a message links to.
const noEmbeds = 1 << 2

func (n *Notifier) message(m *sdk.Notification) message {
	content := ""
	for most := maxText; most > 0; most /= 2 {
		if content = render(m, most); len([]rune(content)) <= maxContent {
			break
		}
	}
	return message{Content: content, Username: n.cfg.Username, Allowed: mentions{Parse: []string{}}, Flags: noEmbeds}
}

func render(m *sdk.Notification, most int) string {
	var out strings.Builder
	for _, s := range post.Segments(m, most) {
		text := escape(s.Value)
		switch {
		case s.Value == "":
		case s.Href != "":
			out.WriteString("[" + text + "](<" + link.Replace(s.Href) + ">)")
		case s.Kind == sdk.SegmentBold:
			out.WriteString("**" + text + "**")
		case s.Kind == sdk.SegmentCode:
			out.WriteString("`" + strings.ReplaceAll(s.Value, "`", "'") + "`")
		default:
			out.WriteString(text)
		}
	}
	if out.Len() == 0 {
		return escape(m.Action.Name + "…")
	}
	return out.String()
}

// link keeps an address within the brackets it is put in.
var link = strings.NewReplacer("<", "%3C", ">", "%3E", ")", "%29", " ", "%20")

// marks are what begins something in Discord's markdown, anywhere in a line.
const marks = "\\`*_~|<>[]()#-+.!:@&"

// escape makes a text stand for itself. A full stop or a colon is left alone
// between letters or digits, so that addresses stay readable; what they begin
// (a list, an emoji) they begin beside a blank.
func escape(s string) string {
	var out strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		inside := i > 0 && i+1 < len(runes) && wordy(runes[i-1]) && wordy(runes[i+1])
		if strings.ContainsRune(marks, r) && (!inside || !strings.ContainsRune(".-@:&", r)) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}

func wordy(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f
}

// Package discord is a notifier that posts to a Discord webhook.
//
// Texts of an event are escaped, and no mention in a message notifies a user: each
// message disables mentions. A URL that ends in /slack, as tools
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

// config is the config of an instance; sample.yaml explains each key.
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
	post.Sender

	cfg config
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
// leaves room for escapes; a longer text is truncated further.
const (
	maxContent = 2000
	maxText    = 1800
)

// Open makes the client. Discord takes about five messages in two seconds.
func (n *Notifier) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	n.Connect(n.cfg.Options)
	return sdk.NotifierProperties{
		MaxInFlight: 2, PerSecond: 2, Burst: 5, PerDestination: true, MaxTextBytes: maxContent, Formats: []string{sdk.FormatSegments},
	}, nil
}

// Preview shows the message as Discord would get it.
func (n *Notifier) Preview(_ context.Context, m *sdk.Notification) (sdk.Preview, error) {
	return post.Preview(n.message(m))
}

// Notify posts the message and waits for it to be there.
func (n *Notifier) Notify(ctx context.Context, m *sdk.Notification) (sdk.NotifyResult, error) {
	to, err := n.cfg.Target(m, n.cfg.URL, "discord.com", "*.discord.com", "discordapp.com")
	if err != nil {
		return sdk.NotifyResult{}, err
	}
	to, err = target(to)
	if err != nil {
		return sdk.NotifyResult{}, sdk.ConfigError("/url", errors.New("this is not a URL"))
	}
	answer, err := n.Send(ctx, m, to, nil, n.message(m))
	if err != nil {
		return sdk.NotifyResult{Rate: rate(answer.Header)}, post.Throttle(post.Own(m, err), post.Seconds(answer.Header.Get("X-RateLimit-Reset-After")))
	}
	var reply struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(answer.Body, &reply) // the id is nice to have
	result := m.Delivered(reply.ID)
	result.Rate = rate(answer.Header)
	return result, nil
}

// target returns the webhook's address with the parameter that makes it answer with the
// id of the stored message.
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

// rate reads the rate limit headers of an answer.
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

// mentions lists the mentions that a message may trigger: none.
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

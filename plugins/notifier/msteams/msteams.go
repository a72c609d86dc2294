// Package msteams is a notifier that posts to Microsoft Teams: an Adaptive Card
// to the address of a workflow, or a plain text to an old connector.
//
// In a card every part of a message is a run of text of its own, which Teams
// never reads as markdown. For the connectors, which know nothing else, what
// stands in an event is escaped.
package msteams

import (
	"context"
	"net/url"
	"strings"

	"github.com/guidonhq/guidon/plugins/notifier/internal/post"
	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	URL    string `json:"url" required:"true" secret:"true" doc:"Address of a workflow (\"When a Teams webhook request is received\"), or of an old connector."`
	Format string `json:"format" enum:"auto|card|text" doc:"An Adaptive Card, a plain text, or what the address asks for."`
	post.Options
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "msteams", Version: "1.0.0",
		Summary:  "Posts Adaptive Cards to Microsoft Teams.",
		Notifier: func() sdk.Notifier { return New() },
	}
}

// Notifier posts to one channel.
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
func New() *Notifier { return &Notifier{cfg: config{Format: "auto", Options: post.Defaults()}} }

// Config is where the SDK puts the operator's config.
func (n *Notifier) Config() any { return &n.cfg }

// Validate checks the URL.
func (n *Notifier) Validate() error {
	if err := n.cfg.Options.URL(n.cfg.URL, ""); err != nil {
		return sdk.ConfigError("/url", err)
	}
	return nil
}

// maxText keeps a card well below the 28 KB that Teams takes.
const maxText = 4000

// Open makes the client. Teams takes four messages a second.
func (n *Notifier) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	n.Connect(n.cfg.Options)
	return sdk.NotifierProperties{
		MaxInFlight: 2, PerSecond: 2, Burst: 4, PerDestination: true, MaxTextBytes: maxText, Formats: []string{sdk.FormatSegments},
	}, nil
}

// Preview shows the message as Teams would get it.
func (n *Notifier) Preview(_ context.Context, m *sdk.Notification) (sdk.Preview, error) {
	return post.Preview(n.message(m, n.cfg.URL))
}

// hosts are where Teams and Power Automate take messages.
var hosts = []string{
	"*.webhook.office.com", "*.logic.azure.com", "*.api.powerplatform.com", "*.environment.api.powerplatform.com", "outlook.office.com",
}

// Notify posts the message.
func (n *Notifier) Notify(ctx context.Context, m *sdk.Notification) (sdk.NotifyResult, error) {
	to, err := n.cfg.Target(m, n.cfg.URL, hosts...)
	if err != nil {
		return sdk.NotifyResult{}, err
	}
	answer, err := n.Send(ctx, m, to, nil, n.message(m, to))
	if err == nil {
		err = connectorFailed(string(answer.Body))
	}
	if err != nil {
		return sdk.NotifyResult{}, post.Own(m, err)
	}
	return m.Delivered(""), nil
}

// connectorFailed finds the failure that an old connector reports with a 200.
func connectorFailed(said string) error {
	if !strings.Contains(said, "delivery failed") {
		return nil
	}
	class := sdk.ClassTransient
	if strings.Contains(said, "429") {
		class = sdk.ClassThrottled
	}
	return sdk.Errorf(class, "connector", "Teams says: %s", post.Cut(said, 200)).From(sdk.SourceDownstream)
}

// isConnector recognises an address of the old kind.
func isConnector(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".webhook.office.com") || u.Hostname() == "outlook.office.com")
}

func (n *Notifier) message(m *sdk.Notification, to string) any {
	if n.cfg.Format == "text" || n.cfg.Format == "auto" && isConnector(to) {
		return text{Text: markdown(m)}
	}
	return card(m)
}

// text is the message of a connector.
type text struct {
	Text string `json:"text"`
}

func markdown(m *sdk.Notification) string {
	var out strings.Builder
	for _, s := range post.Segments(m, maxText) {
		value := escape(s.Value)
		switch {
		case s.Value == "":
		case s.Href != "":
			out.WriteString("[" + value + "](" + link.Replace(s.Href) + ")")
		case s.Kind == sdk.SegmentBold:
			out.WriteString("**" + value + "**")
		default:
			out.WriteString(value)
		}
	}
	return out.String()
}

// link keeps an address within the brackets it is put in.
var link = strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20")

// escape makes a text stand for itself in markdown, and is no HTML.
func escape(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r == '<':
			out.WriteString("&lt;")
			continue
		case r == '>':
			out.WriteString("&gt;")
			continue
		case r == '&':
			out.WriteString("&amp;")
			continue
		case strings.ContainsRune("\\`*_{}[]()!#+-~|", r):
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// card is the message of a workflow, as the Bot Framework wraps a card.
func card(m *sdk.Notification) any {
	var runs []run
	for _, s := range post.Segments(m, maxText) {
		if s.Value == "" {
			continue
		}
		r := run{Type: "TextRun", Text: s.Value}
		switch {
		case s.Href != "":
			r.Action = &openURL{Type: "Action.OpenUrl", URL: s.Href}
		case s.Kind == sdk.SegmentBold:
			r.Weight = "Bolder"
		case s.Kind == sdk.SegmentCode:
			r.Font = "Monospace"
		}
		runs = append(runs, r)
	}
	return envelope{Type: "message", Attachments: []attachment{{
		ContentType: "application/vnd.microsoft.card.adaptive",
		Content: adaptive{
			Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.4",
			Body: []richText{{Type: "RichTextBlock", Inlines: runs}}, Teams: width{"Full"},
		},
	}}}
}

type envelope struct {
	Type        string       `json:"type"`
	Attachments []attachment `json:"attachments"`
}

type attachment struct {
	ContentType string   `json:"contentType"`
	ContentURL  *string  `json:"contentUrl"`
	Content     adaptive `json:"content"`
}

type adaptive struct {
	Schema  string     `json:"$schema"`
	Type    string     `json:"type"`
	Version string     `json:"version"`
	Body    []richText `json:"body"`
	Teams   width      `json:"msteams"`
}

type width struct {
	Width string `json:"width"`
}

type richText struct {
	Type    string `json:"type"`
	Inlines []run  `json:"inlines"`
}

type run struct {
	Type   string   `json:"type"`
	Text   string   `json:"text"`
	Weight string   `json:"weight,omitempty"`
	Font   string   `json:"fontType,omitempty"`
	Action *openURL `json:"selectAction,omitempty"`
}

type openURL struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

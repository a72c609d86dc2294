// Package slack is a notifier that posts to Slack, through an incoming webhook
// or as a bot.
//
// A message is sent as rich text, whose parts Slack never reads as markup, so that
// texts of an event can neither address a channel nor format anything. The
// plain text beside it, which Slack shows in banners, is escaped as Slack requires.
package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/guidonhq/guidon/plugins/notifier/internal/post"
	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	URL     string `json:"url" secret:"true" doc:"Incoming webhook, https://hooks.slack.com/services/…. Either this or a token."`
	Token   string `json:"token" secret:"true" doc:"Token of a bot that may chat:write, xoxb-…. Either this or a webhook."`
	Channel string `json:"channel" doc:"Channel a bot posts to: its id, or #name. An action may name another."`
	API     string `json:"api" doc:"Where Slack's API is."`
	post.Options
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "slack", Version: "1.0.0",
		Summary:  "Posts to Slack, through an incoming webhook or as a bot.",
		Notifier: func() sdk.Notifier { return New() },
	}
}

// Notifier posts to one workspace.
type Notifier struct {
	post.Sender

	cfg config
}

var (
	_ sdk.Notifier   = (*Notifier)(nil)
	_ sdk.Configured = (*Notifier)(nil)
	_ sdk.Validator  = (*Notifier)(nil)
	_ sdk.Checker    = (*Notifier)(nil)
	_ sdk.Previewer  = (*Notifier)(nil)
)

// New returns a notifier that is not open, its config at the defaults.
func New() *Notifier {
	return &Notifier{cfg: config{API: "https://slack.com/api", Options: post.Defaults()}}
}

// Config is where the SDK puts the operator's config.
func (n *Notifier) Config() any { return &n.cfg }

// Validate checks that there is one way to post.
func (n *Notifier) Validate() error {
	switch c := n.cfg; {
	case (c.URL == "") == (c.Token == ""):
		return sdk.ConfigError("/url", errors.New("give either a webhook (url) or the token of a bot"))
	case c.URL != "":
		if err := n.cfg.Options.URL(c.URL, ""); err != nil {
			return sdk.ConfigError("/url", err)
		}
	case c.Channel == "":
		return sdk.ConfigError("/channel", errors.New("name the channel the bot posts to"))
	default:
		if err := n.cfg.Options.URL(c.API, ""); err != nil {
			return sdk.ConfigError("/api", err)
		}
	}
	return nil
}

// maxText is how much of a message is sent; Slack advises at most so much.
const maxText = 3000

// Open makes the client. Slack takes about one message a second and channel.
func (n *Notifier) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	n.Connect(n.cfg.Options)
	return sdk.NotifierProperties{
		MaxInFlight: 4, PerSecond: 1, Burst: 4, PerDestination: true, MaxTextBytes: maxText, Formats: []string{sdk.FormatSegments},
	}, nil
}

// Check requests the identity of the bot. A webhook cannot be tried without a message.
func (n *Notifier) Check(ctx context.Context) error {
	if n.cfg.Token == "" {
		return nil
	}
	_, err := n.call(ctx, "auth.test", struct{}{})
	return err
}

// Preview shows the message as Slack would get it.
func (n *Notifier) Preview(_ context.Context, m *sdk.Notification) (sdk.Preview, error) {
	return post.Preview(messageOf(m, n.channel(m)))
}

func (n *Notifier) channel(m *sdk.Notification) string {
	if n.cfg.Token == "" {
		return ""
	}
	if m.Destination != "" {
		return m.Destination
	}
	return n.cfg.Channel
}

// Notify posts the message. A destination is a channel for a bot, and another
// incoming webhook for a webhook.
func (n *Notifier) Notify(ctx context.Context, m *sdk.Notification) (sdk.NotifyResult, error) {
	if n.cfg.Token != "" {
		ts, err := n.call(ctx, "chat.postMessage", messageOf(m, n.channel(m)))
		return m.Delivered(ts), post.Own(m, err)
	}
	to, err := n.cfg.Target(m, n.cfg.URL, "hooks.slack.com", "hooks.slack-gov.com")
	if err != nil {
		return sdk.NotifyResult{}, err
	}
	if _, err := n.Send(ctx, m, to, nil, messageOf(m, "")); err != nil {
		return sdk.NotifyResult{}, post.Own(m, err)
	}
	return m.Delivered(""), nil
}

// call calls a method of the API, which answers 200 even with an error.
func (n *Notifier) call(ctx context.Context, method string, body any) (ts string, err error) {
	to, err := url.JoinPath(n.cfg.API, method)
	if err != nil {
		return "", sdk.ConfigError("/api", err)
	}
	answer, err := n.Post(ctx, to, http.Header{"Authorization": {"Bearer " + n.cfg.Token}}, body)
	if err != nil {
		return "", err
	}
	var reply struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
		TS    string `json:"ts"`
	}
	if err := json.Unmarshal(answer.Body, &reply); err != nil {
		return "", sdk.Errorf(sdk.ClassTransient, "unreadable_answer", "Slack's answer cannot be read")
	}
	if reply.OK {
		return reply.TS, nil
	}
	return "", refusal(reply.Error)
}

// refusal classifies an error of the API by its documented name.
func refusal(code string) error {
	e := &sdk.Error{Class: sdk.ClassPermanent, Code: "slack_" + code, Message: "Slack says " + code, Source: sdk.SourceDownstream}
	switch code {
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		e.Class = sdk.ClassThrottled
	case "fatal_error", "internal_error", "service_unavailable", "request_timeout", "team_added_to_org", "":
		e.Class = sdk.ClassTransient
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "missing_scope", "org_login_required",
		"ekm_access_denied", "no_permission":
		e.Class, e.Pointer = sdk.ClassConfig, "/token"
	case "channel_not_found", "not_in_channel", "is_archived", "restricted_action":
		e.Class, e.Pointer = sdk.ClassConfig, "/channel"
	}
	return e
}

// message is what Slack is sent.
type message struct {
	Channel     string  `json:"channel,omitempty"`
	Text        string  `json:"text"`
	Blocks      []block `json:"blocks"`
	UnfurlLinks bool    `json:"unfurl_links"`
	UnfurlMedia bool    `json:"unfurl_media"`
	LinkNames   bool    `json:"link_names"`
	Parse       string  `json:"parse"`
}

type block struct {
	Type     string    `json:"type"`
	Elements []element `json:"elements"`
}

type element struct {
	Type     string    `json:"type"`
	Elements []element `json:"elements,omitempty"`
	Text     string    `json:"text,omitempty"`
	URL      string    `json:"url,omitempty"`
	Style    *style    `json:"style,omitempty"`
}

type style struct {
	Bold bool `json:"bold,omitempty"`
	Code bool `json:"code,omitempty"`
}

func messageOf(m *sdk.Notification, channel string) message {
	var parts []element
	for _, s := range post.Segments(m, maxText) {
		if s.Value == "" {
			continue // Slack refuses an empty text
		}
		e := element{Type: "text", Text: s.Value}
		switch {
		case s.Href != "":
			e.Type, e.URL = "link", s.Href
		case s.Kind == sdk.SegmentBold:
			e.Style = &style{Bold: true}
		case s.Kind == sdk.SegmentCode:
			e.Style = &style{Code: true}
		}
		parts = append(parts, e)
	}
	if len(parts) == 0 {
		parts = []element{{Type: "text", Text: fmt.Sprintf("(%s)", m.Action.Name)}}
	}
	return message{
		Channel: channel, Text: escape.Replace(post.Plain(m, maxText)), Parse: "none",
		Blocks: []block{{Type: "rich_text", Elements: []element{{Type: "rich_text_section", Elements: parts}}}},
	}
}

// escape makes a text stand for itself, as Slack documents it.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

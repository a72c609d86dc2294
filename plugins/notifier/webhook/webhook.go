// Package webhook is a notifier that posts what happened to an HTTP endpoint,
// as JSON, signed as in Standard Webhooks (standardwebhooks.com). The id of a
// message is the same each time it is sent, so an endpoint can tell a second
// delivery.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/guidonhq/guidon/plugins/notifier/internal/post"
	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	URL     string            `json:"url" required:"true" secret:"true" doc:"Where to post to. An action may name another address."`
	Secret  string            `json:"secret" secret:"true" doc:"Secret to sign with: whsec_ and base64, as Standard Webhooks have it. Without one nothing is signed, and nothing is signed for an address that an action names."`
	Headers map[string]string `json:"headers" secret:"true" doc:"Headers to add, such as Authorization. They go to the configured address only."`
	post.Options
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "webhook", Version: "1.0.0",
		Summary:  "Posts notifications to an HTTP endpoint, signed.",
		Notifier: func() sdk.Notifier { return New() },
	}
}

// Notifier posts to one endpoint.
type Notifier struct {
	post.Sender

	cfg    config
	signer *webhooks.Webhook
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

// own are the headers that the notifier sets itself.
var own = map[string]bool{
	"Webhook-Id": true, "Webhook-Timestamp": true, "Webhook-Signature": true, "Idempotency-Key": true,
	"Content-Type": true, "Content-Length": true, "Host": true, "Transfer-Encoding": true, "User-Agent": true,
}

// Validate checks the URL, the secret and the headers.
func (n *Notifier) Validate() error {
	var errs []error
	if err := n.cfg.Options.URL(n.cfg.URL, ""); err != nil {
		errs = append(errs, sdk.ConfigError("/url", err))
	}
	if n.cfg.Secret != "" {
		if _, err := webhooks.NewWebhook(n.cfg.Secret); err != nil {
			errs = append(errs, sdk.ConfigError("/secret", errors.New("a secret is whsec_ and base64")))
		}
	}
	for name := range n.cfg.Headers {
		if own[http.CanonicalHeaderKey(name)] {
			errs = append(errs, sdk.ConfigError("/headers", fmt.Errorf("%s is set by the notifier", name)))
		}
	}
	return errors.Join(errs...)
}

// Open makes the client.
func (n *Notifier) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	if n.cfg.Secret != "" {
		var err error
		if n.signer, err = webhooks.NewWebhook(n.cfg.Secret); err != nil {
			return sdk.NotifierProperties{}, n.Validate()
		}
	}
	n.Connect(n.cfg.Options)
	return sdk.NotifierProperties{MaxInFlight: 8, Formats: []string{sdk.FormatSegments}}, nil
}

// Preview shows the body.
func (n *Notifier) Preview(_ context.Context, m *sdk.Notification) (sdk.Preview, error) {
	return post.Preview(bodyOf(m))
}

// Notify posts the message. The operator's headers and signature go to the
// configured address only: a signed body at the address of an action could be
// sent on to the endpoint that trusts the signature.
func (n *Notifier) Notify(ctx context.Context, m *sdk.Notification) (sdk.NotifyResult, error) {
	raw, err := json.Marshal(bodyOf(m))
	if err != nil {
		return sdk.NotifyResult{}, sdk.Permanent(err)
	}
	to, header := n.cfg.URL, http.Header{}
	if parent := sdk.TraceParent(ctx); parent != "" {
		header.Set("Traceparent", parent)
	}
	if m.Destination != "" {
		if err := n.cfg.Named(m.Destination); err != nil {
			return sdk.NotifyResult{}, sdk.Permanent(err)
		}
		to = m.Destination
	} else {
		for name, value := range n.cfg.Headers {
			header.Set(name, value)
		}
	}
	header.Set("Idempotency-Key", m.ID)
	now := time.Now()
	header.Set(webhooks.HeaderWebhookID, m.ID)
	header.Set(webhooks.HeaderWebhookTimestamp, fmt.Sprint(now.Unix()))
	if n.signer != nil && m.Destination == "" {
		signature, err := n.signer.Sign(m.ID, now, raw)
		if err != nil {
			return sdk.NotifyResult{}, sdk.Permanent(err)
		}
		header.Set(webhooks.HeaderWebhookSignature, signature)
	}
	if _, err := n.Send(ctx, m, to, header, raw); err != nil {
		return sdk.NotifyResult{}, post.Own(m, err)
	}
	return m.Delivered(""), nil
}

// body is the envelope of Standard Webhooks.
type body struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	Text       string         `json:"text"`
	Suppressed uint32         `json:"suppressed,omitempty"`
	Test       bool           `json:"test,omitempty"`
	Project    sdk.ProjectRef `json:"project"`
	Action     sdk.ActionRef  `json:"action"`
	Event      *sdk.Event     `json:"event"`
	EventURL   string         `json:"event_url,omitempty"`
	Person     sdk.PersonRef  `json:"person"`
}

func bodyOf(m *sdk.Notification) body {
	return body{Type: "action_performed", Timestamp: m.Event.Timestamp, Data: data{
		Text: m.Text, Suppressed: m.Suppressed, Test: m.Test, Project: m.Project, Action: m.Action,
		Event: &m.Event, EventURL: m.EventURL, Person: m.Person,
	}}
}

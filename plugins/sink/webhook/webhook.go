// Package webhook is a sink that posts batches of events to an HTTP endpoint.
//
// A batch is signed as in Standard Webhooks (standardwebhooks.com), and its id
// is the idempotency key: a batch that is sent again, after a lost answer, has
// the same id and the same body. Unless the operator allows it, the address must
// be a public one, and no redirect is followed.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/klauspost/compress/gzip"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	URL           string            `json:"url" required:"true" secret:"true" doc:"Where to post to."`
	Format        string            `json:"format" enum:"json|ndjson" doc:"One JSON object with a list of events, or one event a line."`
	Secret        string            `json:"secret" secret:"true" doc:"Secret to sign with: whsec_ and base64, as Standard Webhooks have it. Without one nothing is signed."`
	Headers       map[string]string `json:"headers" secret:"true" doc:"Headers to add, such as Authorization."`
	Gzip          bool              `json:"gzip" doc:"Compress the body."`
	MaxEvents     int               `json:"max_events" min:"1" max:"10000" doc:"Most events in a batch."`
	Timeout       time.Duration     `json:"timeout" min:"100ms" max:"5m" doc:"How long to wait for an answer."`
	AllowHosts    []string          `json:"allow_hosts" doc:"Host names that may lead to private addresses."`
	AllowNetworks []netip.Prefix    `json:"allow_networks" doc:"Private networks that may be reached, such as 10.0.0.0/8."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "webhook", Version: "1.0.0",
		Summary: "Posts batches of events to an HTTP endpoint, signed.",
		Sink:    func() sdk.Sink { return New() },
	}
}

// Sink posts to one endpoint.
type Sink struct {
	cfg    config
	client *http.Client
	signer *webhooks.Webhook
}

var (
	_ sdk.Sink       = (*Sink)(nil)
	_ sdk.Configured = (*Sink)(nil)
	_ sdk.Validator  = (*Sink)(nil)
)

// New returns a sink that is not open, its config at the defaults.
func New() *Sink {
	return &Sink{cfg: config{Format: "json", MaxEvents: 500, Timeout: 10 * time.Second}}
}

// Config is where the SDK puts the operator's config.
func (s *Sink) Config() any { return &s.cfg }

// own are the headers that the sink sets itself.
var own = map[string]bool{
	"Webhook-Id": true, "Webhook-Timestamp": true, "Webhook-Signature": true, "Idempotency-Key": true,
	"Content-Type": true, "Content-Encoding": true, "Content-Length": true, "Host": true, "Transfer-Encoding": true,
}

// Validate checks the URL, the secret and the headers.
func (s *Sink) Validate() error {
	var errs []error
	if u, err := url.Parse(s.cfg.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, sdk.ConfigError("/url", errors.New("this is not an http or https URL")))
	}
	if s.cfg.Secret != "" {
		if _, err := webhooks.NewWebhook(s.cfg.Secret); err != nil {
			errs = append(errs, sdk.ConfigError("/secret", errors.New("a secret is whsec_ and base64")))
		}
	}
	for name := range s.cfg.Headers {
		if own[http.CanonicalHeaderKey(name)] {
			errs = append(errs, sdk.ConfigError("/headers", fmt.Errorf("%s is set by the sink", name)))
		}
	}
	return errors.Join(errs...)
}

// Open makes the client; the first batch shows whether the endpoint answers.
func (s *Sink) Open(context.Context, sdk.OpenRequest) (sdk.SinkProperties, error) {
	if s.cfg.Secret != "" {
		var err error
		if s.signer, err = webhooks.NewWebhook(s.cfg.Secret); err != nil {
			return sdk.SinkProperties{}, s.Validate()
		}
	}
	s.client = sdk.HTTPClient(sdk.HTTPOptions{Timeout: s.cfg.Timeout, AllowHosts: s.cfg.AllowHosts, AllowNetworks: s.cfg.AllowNetworks})
	return sdk.SinkProperties{
		MaxInFlight: 1, MaxEvents: s.cfg.MaxEvents, MaxBytes: 4 << 20, Linger: time.Second, Ordering: sdk.OrderTotal,
		Dedup: sdk.DedupByBatchID, Commit: sdk.CommitImmediate, Durability: sdk.DurabilityMemory,
	}, nil
}

// Close closes idle connections.
func (s *Sink) Close(context.Context) error {
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return nil
}

// Write posts the batch; a 2xx confirms it. An endpoint that calls a batch bad
// or too large gets its halves, until the events to blame are alone.
func (s *Sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	req, err := s.request(ctx, b)
	if err != nil {
		return sdk.WriteResult{}, sdk.ConfigError("/headers", err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return sdk.WriteResult{}, unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := answered(resp); err != nil {
		return sdk.WriteResult{}, err
	}
	return b.Committed(), nil
}

// answered classifies an answer. What is wrong with the endpoint rather than
// with the events stops the instance: no event should be lost to a redirect.
func answered(resp *http.Response) error {
	err := sdk.FromHTTP(resp)
	e, ok := errors.AsType[*sdk.Error](err)
	if !ok {
		return err
	}
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400, code == http.StatusMethodNotAllowed, code == http.StatusGone, e.Class == sdk.ClassConfig:
		out := *e
		out.Class, out.Pointer = sdk.ClassConfig, "/url"
		return &out
	}
	return e
}

// unreachable is the error of a request that had no answer, without the URL,
// which may hold a secret.
func unreachable(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok && !wrapped.Timeout() {
		err = wrapped.Err
	} else if ok {
		return sdk.Errorf(sdk.ClassTransient, "timeout", "the endpoint did not answer in time").From(sdk.SourceDownstream)
	}
	e := sdk.AsError(err)
	if e.Class == sdk.ClassConfig && e.Pointer == "" {
		out := *e
		out.Pointer = "/url"
		return &out
	}
	return e
}

// body is the encoded batch. It depends on the batch alone.
func (s *Sink) body(b *sdk.Batch) []byte {
	if s.cfg.Format == "ndjson" {
		return b.NDJSON()
	}
	out := make([]byte, 0, b.Size()+len(b.Records)+100)
	out = fmt.Appendf(out, `{"type":"events","timestamp":"%s","data":[`, b.Records[len(b.Records)-1].ReceivedAt.UTC().Format(time.RFC3339Nano))
	for i := range b.Records {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, b.Records[i].JSON...)
	}
	return append(out, "]}"...)
}

func (s *Sink) request(ctx context.Context, b *sdk.Batch) (*http.Request, error) {
	body := s.body(b)
	sent := body
	if s.cfg.Gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // a buffer takes everything
		_ = w.Close()
		sent = packed.Bytes()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(sent))
	if err != nil {
		return nil, err
	}
	if parent := sdk.TraceParent(ctx); parent != "" {
		req.Header.Set("Traceparent", parent)
	}
	for name, value := range s.cfg.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", map[string]string{"json": "application/json", "ndjson": "application/x-ndjson"}[s.cfg.Format])
	if s.cfg.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	req.Header.Set("User-Agent", "guidon-webhook/1.0.0")
	req.Header.Set("Idempotency-Key", b.ID)
	return req, s.sign(req, b.ID, body, sent)
}

// sign signs the body byte for byte. A compressed body has two signatures, which
// Standard Webhooks allows: that of its content, for receivers whose framework
// decompresses, and that of the bytes on the wire.
func (s *Sink) sign(req *http.Request, id string, body, sent []byte) error {
	now := time.Now()
	req.Header.Set(webhooks.HeaderWebhookID, id)
	req.Header.Set(webhooks.HeaderWebhookTimestamp, fmt.Sprint(now.Unix()))
	if s.signer == nil {
		return nil
	}
	signature, err := s.signer.Sign(id, now, body)
	if err == nil && s.cfg.Gzip {
		var wire string
		wire, err = s.signer.Sign(id, now, sent)
		signature += " " + wire
	}
	if err != nil {
		return err
	}
	req.Header.Set(webhooks.HeaderWebhookSignature, signature)
	return nil
}

// Package nats is a sink that publishes events to a JetStream stream of NATS.
//
// Every message carries the uuid of its event as its id, so the server drops
// what is published again within the stream's duplicate window. A batch is
// confirmed when the server has acknowledged every message of it.
package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	Servers     []string      `json:"servers" required:"true" doc:"Servers to connect to, as nats://host:4222 or tls://host:4222."`
	Subject     string        `json:"subject" doc:"Subject to publish to. {project} and {event} stand for the id of the project and the name of the event."`
	Stream      string        `json:"stream" doc:"Stream that takes the subject. It is made when create is on; otherwise it must be there."`
	Create      bool          `json:"create" doc:"Make the stream when it is not there."`
	Replicas    int           `json:"replicas" min:"1" max:"5" doc:"Copies of a stream that is made."`
	Duplicates  time.Duration `json:"duplicates" min:"1s" doc:"For how long a stream that is made knows a message again."`
	Timeout     time.Duration `json:"timeout" min:"1s" max:"5m" doc:"How long to wait for the acknowledgement of a batch."`
	Credentials string        `json:"credentials_file" format:"path" doc:"File with the user's credentials (.creds)."`
	User        string        `json:"user" doc:"Name of the user."`
	Password    string        `json:"password" secret:"true" doc:"Password of the user."`
	Token       string        `json:"token" secret:"true" doc:"Token, instead of a user."`
	CAFile      string        `json:"ca_file" format:"path" doc:"PEM file with the certificates to trust instead of the system's."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "nats", Version: "1.0.0",
		Summary: "Publishes events to a JetStream stream of NATS.",
		Sink:    func() sdk.Sink { return New() },
	}
}

// Sink is a publisher.
type Sink struct {
	cfg  config
	conn *nats.Conn
	js   jetstream.JetStream
}

var (
	_ sdk.Sink       = (*Sink)(nil)
	_ sdk.Configured = (*Sink)(nil)
	_ sdk.Validator  = (*Sink)(nil)
	_ sdk.Checker    = (*Sink)(nil)
)

// New returns a sink that is not open, its config at the defaults.
func New() *Sink {
	return &Sink{cfg: config{
		Subject: "guidon.events.{project}", Stream: "GUIDON_EVENTS", Replicas: 1, Duplicates: 10 * time.Minute, Timeout: 10 * time.Second,
	}}
}

// Config is where the SDK puts the operator's config.
func (s *Sink) Config() any { return &s.cfg }

// Validate checks what tags cannot express.
func (s *Sink) Validate() error {
	var errs []error
	if len(s.cfg.Servers) == 0 {
		errs = append(errs, sdk.ConfigError("/servers", errors.New("name at least one server")))
	}
	if !validSubject(subjectOf(s.cfg.Subject, 1, "e")) {
		errs = append(errs, sdk.ConfigError("/subject", errors.New("a subject is words between dots, without blanks, * and >")))
	}
	if s.cfg.Stream == "" || strings.ContainsAny(s.cfg.Stream, " \t\r\n.*>/\\") {
		errs = append(errs, sdk.ConfigError("/stream", errors.New("the name of a stream has no blanks, dots, slashes, * and >")))
	}
	return errors.Join(errs...)
}

// Open connects, and finds or makes the stream.
func (s *Sink) Open(ctx context.Context, req sdk.OpenRequest) (sdk.SinkProperties, error) {
	var err error
	if s.conn, err = nats.Connect(strings.Join(s.cfg.Servers, ","), s.options(req.Instance)...); err != nil {
		return sdk.SinkProperties{}, classify(err)
	}
	if s.js, err = jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(maxPending)); err != nil {
		return sdk.SinkProperties{}, classify(err)
	}
	if err := s.find(ctx); err != nil {
		return sdk.SinkProperties{}, err
	}
	return sdk.SinkProperties{
		MaxInFlight: 1, MaxEvents: maxPending, MaxBytes: 4 << 20, Ordering: sdk.OrderPerKey,
		Dedup: sdk.DedupByEventID, Commit: sdk.CommitImmediate, Durability: sdk.DurabilityLocalDisk,
	}, nil
}

// maxPending is how many messages may wait for their acknowledgement.
const maxPending = 2000

func (s *Sink) options(instance string) []nats.Option {
	opts := []nats.Option{nats.Name("guidon " + instance), nats.Timeout(s.cfg.Timeout), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond)}
	if s.cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(s.cfg.Credentials))
	}
	if s.cfg.User != "" {
		opts = append(opts, nats.UserInfo(s.cfg.User, s.cfg.Password))
	}
	if s.cfg.Token != "" {
		opts = append(opts, nats.Token(s.cfg.Token))
	}
	if s.cfg.CAFile != "" {
		opts = append(opts, nats.RootCAs(s.cfg.CAFile))
	}
	return opts
}

// find looks for the stream, and makes it if it should.
func (s *Sink) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, err := s.js.Stream(ctx, s.cfg.Stream)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return classify(err)
	}
	if !s.cfg.Create {
		return sdk.ConfigError("/stream", fmt.Errorf("there is no stream %s, and with create off it is not made", s.cfg.Stream))
	}
	_, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: s.cfg.Stream, Subjects: []string{subjectOf(s.cfg.Subject, 0, "")}, Storage: jetstream.FileStorage,
		Replicas: s.cfg.Replicas, Duplicates: s.cfg.Duplicates, Description: "Events of Guidon.",
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil // by another node, in this moment
	}
	return classify(err)
}

// Check looks up the stream.
func (s *Sink) Check(ctx context.Context) error {
	_, err := s.js.Stream(ctx, s.cfg.Stream)
	return classify(err)
}

// Close leaves; what was confirmed is already safe.
func (s *Sink) Close(context.Context) error {
	if s.conn != nil {
		s.conn.Close()
	}
	return nil
}

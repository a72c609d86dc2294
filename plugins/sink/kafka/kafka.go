// Package kafka is a sink that produces events to Kafka.
//
// The key of a record is the distinct id, so that the events of one person stay
// in order in one partition; its value is the event as JSON, and its uuid and
// project are in headers. A batch is confirmed when every replica in sync has
// all of it. A batch that is sent again is produced again: consumers that count
// distinguish records by the uuid.
package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	Brokers     []string      `json:"brokers" required:"true" doc:"Brokers to begin with, as host:port; the others are asked for."`
	Topic       string        `json:"topic" doc:"Topic to produce to. {project} stands for the id of the project."`
	Create      bool          `json:"create" doc:"Let the brokers make a topic that is not there, if they are set up to."`
	Compression string        `json:"compression" enum:"none|gzip|snappy|lz4|zstd" doc:"How batches of records are compressed."`
	MaxBytes    int           `json:"max_bytes" min:"1024" max:"67108864" doc:"Largest batch of records the brokers take (max.message.bytes). An event that does not fit becomes a dead letter."`
	Timeout     time.Duration `json:"timeout" min:"1s" max:"5m" doc:"How long to try to produce before the batch is given back to the server, which tries again later."`
	TLS         tlsConfig     `json:"tls" doc:"Encryption and certificates."`
	SASL        saslConfig    `json:"sasl" doc:"User and password."`
}

type tlsConfig struct {
	Enabled bool   `json:"enabled" doc:"Speak TLS to the brokers."`
	CAFile  string `json:"ca_file" format:"path" doc:"PEM file with the certificates to trust instead of the system's."`
	Cert    string `json:"cert_file" format:"path" doc:"PEM file with the certificate of this client."`
	Key     string `json:"key_file" format:"path" doc:"PEM file with its key."`
}

type saslConfig struct {
	Mechanism string `json:"mechanism" enum:"none|plain|scram-sha-256|scram-sha-512" doc:"How the user is proved."`
	User      string `json:"user" doc:"Name of the user."`
	Password  string `json:"password" secret:"true" doc:"Password of the user."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "kafka", Version: "1.0.0",
		Summary: "Produces events to Kafka, those of one person in order.",
		Sink:    func() sdk.Sink { return New() },
	}
}

// Sink is a producer.
type Sink struct {
	cfg    config
	client *kgo.Client
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
		Topic: "events", Compression: "zstd", MaxBytes: 1_000_012, Timeout: 30 * time.Second, SASL: saslConfig{Mechanism: "none"},
	}}
}

// Config is where the SDK puts the operator's config.
func (s *Sink) Config() any { return &s.cfg }

// Validate checks what tags cannot express.
func (s *Sink) Validate() error {
	var errs []error
	if len(s.cfg.Brokers) == 0 {
		errs = append(errs, sdk.ConfigError("/brokers", errors.New("name at least one broker")))
	}
	if !validTopic(topicOf(s.cfg.Topic, 1)) {
		errs = append(errs, sdk.ConfigError("/topic", errors.New("a topic has 1 to 249 letters, digits, dots, dashes and underscores")))
	}
	if m := s.cfg.SASL.Mechanism; m != "none" && (s.cfg.SASL.User == "" || s.cfg.SASL.Password == "") {
		errs = append(errs, sdk.ConfigError("/sasl", fmt.Errorf("%s needs a user and a password", m)))
	}
	return errors.Join(errs...)
}

// Open connects to the brokers and looks up the topic.
func (s *Sink) Open(ctx context.Context, _ sdk.OpenRequest) (sdk.SinkProperties, error) {
	opts, err := s.options()
	if err != nil {
		return sdk.SinkProperties{}, err
	}
	if s.client, err = kgo.NewClient(opts...); err != nil {
		return sdk.SinkProperties{}, sdk.ConfigError("", err)
	}
	if err := s.client.Ping(ctx); err != nil {
		return sdk.SinkProperties{}, classify(err)
	}
	return sdk.SinkProperties{
		MaxInFlight: 4, MaxEvents: 5000, MaxBytes: 4 << 20, Ordering: sdk.OrderPerKey,
		Dedup: sdk.DedupNone, Commit: sdk.CommitImmediate, Durability: sdk.DurabilityReplicated,
	}, nil
}

// options are the client's. Acknowledgement by all replicas in sync and the
// idempotent producer are the library's defaults, and ours.
func (s *Sink) options() ([]kgo.Opt, error) {
	codec := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(s.cfg.Brokers...), kgo.ClientID("guidon"),
		kgo.ProducerBatchCompression(codec[s.cfg.Compression]), kgo.ProducerBatchMaxBytes(int32(s.cfg.MaxBytes)),
		kgo.ProduceRequestTimeout(min(s.cfg.Timeout, 10*time.Second)),
		kgo.MaxBufferedRecords(50_000), kgo.UnknownTopicRetries(2),
	}
	if s.cfg.Create {
		opts = append(opts, kgo.AllowAutoTopicCreation())
	}
	if s.cfg.TLS.Enabled {
		c, err := s.cfg.TLS.config()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	if m := s.cfg.SASL.method(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

func (c saslConfig) method() sasl.Mechanism {
	switch c.Mechanism {
	case "plain":
		return plain.Auth{User: c.User, Pass: c.Password}.AsMechanism()
	case "scram-sha-256":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha256Mechanism()
	case "scram-sha-512":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha512Mechanism()
	}
	return nil
}

func (c tlsConfig) config() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, sdk.ConfigError("/tls/ca_file", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, sdk.ConfigError("/tls/ca_file", errors.New("there is no certificate in this file"))
		}
	}
	if c.Cert != "" || c.Key != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, sdk.ConfigError("/tls/cert_file", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// Check requests the metadata of the brokers.
func (s *Sink) Check(ctx context.Context) error { return classify(s.client.Ping(ctx)) }

// Close leaves; what was confirmed is already safe.
func (s *Sink) Close(context.Context) error {
	if s.client != nil {
		s.client.Close()
	}
	return nil
}

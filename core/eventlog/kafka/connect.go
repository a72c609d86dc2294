package kafka

import (
	"bytes"
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
	"go.uber.org/zap"
)

// connectOptions returns the options of every client: brokers, TLS, SASL and the log. It
// reads the files that the URL names.
func (t *Target) connectOptions(cfg Config, log *zap.Logger) ([]kgo.Opt, error) {
	if cfg.Password != "" {
		t.Password = cfg.Password
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(t.Brokers...), kgo.ClientID(t.ClientID), kgo.SoftwareNameAndVersion("guidon", "1"),
		kgo.WithLogger(logger{log}), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(250 * time.Millisecond), kgo.MetadataMaxAge(time.Minute),
		kgo.DialTimeout(5 * time.Second), kgo.RequestTimeoutOverhead(cfg.AppendTimeout / 2),
		kgo.RetryTimeout(cfg.AppendTimeout),
		kgo.RetryBackoffFn(func(tries int) time.Duration { return min(2*time.Second, 50*time.Millisecond<<min(tries, 10)) }),
	}
	if t.TLS {
		c, err := t.tlsConfig()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	if t.Mechanism != "" {
		if _, err := t.password(); err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(t.mechanism()))
	}
	return opts, nil
}

// password reads the file each time, so that a changed one is used by new connections.
func (t *Target) password() (string, error) {
	if t.PasswordFile == "" || t.Password != "" {
		return t.Password, nil
	}
	b, err := os.ReadFile(t.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read password_file: %w", err)
	}
	return string(bytes.TrimRight(b, "\r\n")), nil
}

func (t *Target) mechanism() sasl.Mechanism {
	scramAuth := func(context.Context) (scram.Auth, error) {
		p, err := t.password()
		return scram.Auth{User: t.User, Pass: p}, err
	}
	switch t.Mechanism {
	case "scram-sha-256":
		return scram.Sha256(scramAuth)
	case "scram-sha-512":
		return scram.Sha512(scramAuth)
	}
	return plain.Plain(func(context.Context) (plain.Auth, error) {
		p, err := t.password()
		return plain.Auth{User: t.User, Pass: p}, err
	})
}

func (t *Target) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read ca_file: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("there is no certificate in ca_file")
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read cert_file and key_file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// clientOptions returns the options of the client that appends and reads the tails.
func clientOptions(cfg Config, batchBytes int32) []kgo.Opt {
	return []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec(cfg.Compression)), kgo.ProducerBatchMaxBytes(batchBytes),
		kgo.BrokerMaxWriteBytes(max(100<<20, batchBytes+1<<20)), kgo.BrokerMaxReadBytes(max(100<<20, 2*batchBytes)),
		// Append refuses what is above the limits before it reaches the client.
		kgo.MaxBufferedRecords(2 * cfg.MaxQueueRecords),
		// An append that fails is repeated by the caller, so it needs no exact sequence:
		// without the option it could not end while a broker is away.
		kgo.RecordDeliveryTimeout(cfg.AppendTimeout), kgo.AllowIdempotentProduceCancellation(),
		kgo.ProduceRequestTimeout(cfg.AppendTimeout / 2),
		kgo.FetchMaxBytes(16 << 20), kgo.FetchMaxPartitionBytes(4 << 20), kgo.FetchMaxWait(time.Second),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		// A node reads few partitions, so a session saves little; the client ends sessions
		// at Close while it may still use them, which is a data race.
		kgo.DisableFetchSessions(),
	}
}

func codec(name string) kgo.CompressionCodec {
	switch name {
	case "lz4":
		return kgo.Lz4Compression()
	case "zstd":
		return kgo.ZstdCompression()
	case "snappy":
		return kgo.SnappyCompression()
	}
	return kgo.NoCompression()
}

// logger writes the messages of the client library: warnings and errors.
type logger struct{ log *zap.Logger }

// Level implements kgo.Logger.
func (l logger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements kgo.Logger.
func (l logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	fields := make([]zap.Field, 0, len(keyvals)/2+1)
	fields = append(fields, zap.String("message", msg))
	for i := 0; i+1 < len(keyvals); i += 2 {
		fields = append(fields, zap.String(fmt.Sprint(keyvals[i]), fmt.Sprint(keyvals[i+1])))
	}
	if level == kgo.LogLevelError {
		l.log.Error("kafka client error", fields...)
		return
	}
	l.log.Warn("kafka client warning", fields...)
}

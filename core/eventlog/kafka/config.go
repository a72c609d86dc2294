package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config names the topic and holds the limits of the log. Sizes are bytes of record data
// before compression unless noted otherwise.
type Config struct {
	// URL is kafka://[user:password@]host:port[,host:port…]/topic?parameters, or the same
	// with kafkas:// for TLS. Target has the parameters.
	URL string `koanf:"url"`

	// Password replaces that of the URL, so that it may be a reference to a secret with
	// any characters.
	Password string `koanf:"password"`

	// Partitions and ReplicationFactor are those of a topic that is created.
	// ReplicationFactor 0 stands for three, or all brokers if there are fewer.
	Partitions        int `koanf:"partitions"`
	ReplicationFactor int `koanf:"replication_factor"`

	// AcceptWeakTopic accepts a topic that may lose acknowledged records.
	AcceptWeakTopic bool `koanf:"accept_weak_topic"`

	// AcceptOtherLog accepts another topic, or another number of partitions, than the
	// database has used before. Records that are unread there are lost for its readers.
	AcceptOtherLog bool `koanf:"accept_other_log"`

	// Compression of records in the topic: none, lz4, zstd or snappy.
	Compression string `koanf:"compression"`

	// MaxRecordBytes is the largest record. MaxQueueBytes and MaxQueueRecords bound the
	// appends that wait for the brokers; more is refused.
	MaxRecordBytes  int `koanf:"max_record_bytes"`
	MaxQueueBytes   int `koanf:"max_queue_bytes"`
	MaxQueueRecords int `koanf:"max_queue_records"`

	// AppendTimeout is how long an append is tried. It may take twice as long when a
	// broker accepts requests and does not answer.
	AppendTimeout time.Duration `koanf:"append_timeout"`

	// StartTimeout is how long Open waits for the brokers.
	StartTimeout time.Duration `koanf:"start_timeout"`

	// TailBytes of the newest records stay in memory, divided among the partitions that
	// this node reads.
	TailBytes int `koanf:"tail_bytes"`

	// Records that every reader has done are kept until they are about MaxBytes together,
	// over all partitions, or older than MaxAge; 0 switches that bound off. Both off
	// keeps everything.
	MaxBytes int64         `koanf:"max_bytes"`
	MaxAge   time.Duration `koanf:"max_age"`

	// TrimInterval is the pause between two rounds of retention.
	TrimInterval time.Duration `koanf:"trim_interval"`
}

// DefaultConfig keeps a day of records.
func DefaultConfig() Config {
	return Config{
		Partitions:      12,
		Compression:     "lz4",
		MaxRecordBytes:  32 << 20,
		MaxQueueBytes:   64 << 20,
		MaxQueueRecords: 16384,
		AppendTimeout:   10 * time.Second,
		StartTimeout:    30 * time.Second,
		TailBytes:       32 << 20,
		MaxAge:          24 * time.Hour,
		TrimInterval:    10 * time.Second,
	}
}

var compressions = []string{"none", "lz4", "zstd", "snappy"}

// Validate reports every setting that cannot work, named by its key below journal. The
// error does not contain the URL.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("journal.%s %s", key, must))
		}
	}
	if _, err := Parse(c.URL); err != nil {
		errs = append(errs, fmt.Errorf("journal.url: %w", err))
	}
	check(c.Partitions > 0 && c.Partitions <= 10_000, "partitions", "must be from 1 to 10000")
	check(c.ReplicationFactor >= 0 && c.ReplicationFactor <= 100, "replication_factor", "must be from 0 (three, or all brokers) to 100")
	check(slices.Contains(compressions, c.Compression), "compression", "must be one of "+strings.Join(compressions, ", "))
	check(c.MaxRecordBytes > 0 && c.MaxRecordBytes <= 512<<20, "max_record_bytes", "must be from 1 byte to 512 MiB")
	check(c.MaxQueueBytes >= c.MaxRecordBytes, "max_queue_bytes", "must not be smaller than max_record_bytes")
	check(c.MaxQueueRecords > 0, "max_queue_records", "must be positive")
	check(c.AppendTimeout >= time.Second, "append_timeout", "must be at least 1s")
	check(c.StartTimeout > 0, "start_timeout", "must be positive")
	check(c.TailBytes > 0, "tail_bytes", "must be positive")
	check(c.MaxBytes >= 0, "max_bytes", "must not be negative (0 keeps any size)")
	check(c.MaxAge >= 0, "max_age", "must not be negative (0 keeps any age)")
	check(c.TrimInterval > 0, "trim_interval", "must be positive")
	return errors.Join(errs...)
}

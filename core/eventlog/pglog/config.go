package pglog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config holds the limits of the log. Sizes are bytes of record data before compression
// unless noted otherwise.
type Config struct {
	// Partitions of a log that is created.
	Partitions int `koanf:"partitions"`

	// AcceptWeakTopic accepts a server that does not sync its files (fsync = off) and
	// loses acknowledged records when its machine fails.
	AcceptWeakTopic bool `koanf:"accept_weak_topic"`

	// AcceptOtherLog accepts this log although the database has used another before.
	// Records that are unread there are lost for its readers.
	AcceptOtherLog bool `koanf:"accept_other_log"`

	// Compression of stored rows: none, lz4, zstd or snappy.
	Compression string `koanf:"compression"`

	// MaxRecordBytes is the largest record. MaxQueueBytes and MaxQueueRecords bound the
	// appends that wait for the server; more is refused.
	MaxRecordBytes  int `koanf:"max_record_bytes"`
	MaxQueueBytes   int `koanf:"max_queue_bytes"`
	MaxQueueRecords int `koanf:"max_queue_records"`

	// AppendTimeout is how long a commit is tried. An append waits for the commit before
	// it, so it may take twice as long.
	AppendTimeout time.Duration `koanf:"append_timeout"`

	// StartTimeout is how long Open waits for the server.
	StartTimeout time.Duration `koanf:"start_timeout"`

	// TailBytes of the newest records stay in memory, divided among the partitions.
	TailBytes int `koanf:"tail_bytes"`

	// Records that every reader has done are kept until their tables take about MaxBytes
	// on disk, or until they are older than MaxAge; 0 switches that bound off. Both off
	// keeps everything. A sixth of either is kept longer, as whole tables are emptied.
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

// maxPartitions bounds the work of a commit.
const maxPartitions = 256

// Validate reports every setting that cannot work, named by its key below journal.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("journal.%s %s", key, must))
		}
	}
	check(c.Partitions > 0 && c.Partitions <= maxPartitions, "partitions", fmt.Sprintf("must be from 1 to %d with journal.url postgres", maxPartitions))
	check(slices.Contains(compressions, c.Compression), "compression", "must be one of "+strings.Join(compressions, ", "))
	check(c.MaxRecordBytes > 0 && c.MaxRecordBytes <= 256<<20, "max_record_bytes", "must be from 1 byte to 256 MiB with journal.url postgres")
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

package requestlog

import (
	"errors"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/eventlog/pglog"
	"github.com/guidonhq/guidon/core/journal"
)

// Config is the section journal of the configuration. The settings of the local
// journal that a shared log has too mean the same for both; the others have no effect
// there.
type Config struct {
	journal.Config `koanf:",squash"`

	// URL names a log that several servers share: kafka://…, or "postgres" for tables of
	// their database; empty: a journal in the data directory. The remaining settings are
	// those of a shared log; see kafka.Config and pglog.Config.
	URL      string `koanf:"url"`
	Password string `koanf:"password"`

	Partitions        int           `koanf:"partitions"`
	ReplicationFactor int           `koanf:"replication_factor"`
	AcceptWeakTopic   bool          `koanf:"accept_weak_topic"`
	AcceptOtherLog    bool          `koanf:"accept_other_log"`
	Compression       string        `koanf:"compression"`
	AppendTimeout     time.Duration `koanf:"append_timeout"`
	StartTimeout      time.Duration `koanf:"start_timeout"`
}

// DefaultConfig is a local journal.
func DefaultConfig() Config {
	k := kafka.DefaultConfig()
	return Config{
		Config:     journal.DefaultConfig(),
		Partitions: k.Partitions, Compression: k.Compression, AppendTimeout: k.AppendTimeout, StartTimeout: k.StartTimeout,
	}
}

// Shared reports whether the log is one that servers share.
func (c Config) Shared() bool { return c.URL != "" }

// inPostgres reports whether the log is in the database of the servers.
func (c Config) inPostgres() bool { return c.URL == "postgres" }

// Validate returns an error that names every invalid setting by its key.
func (c Config) Validate() error {
	switch {
	case c.inPostgres():
		return c.postgres().Validate()
	case strings.HasPrefix(c.URL, "postgres://"), strings.HasPrefix(c.URL, "postgresql://"):
		return errors.New("journal.url: a log in Postgres is in the database of database.url: write postgres, without an address")
	case c.Shared():
		return c.kafka().Validate()
	}
	return c.Config.Validate()
}

// CheckCluster reports a shared log without the cluster, or the database, that it needs.
func (c Config) CheckCluster(clustered bool, database string) error {
	postgres := strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
	if !c.Shared() || clustered && postgres {
		return nil
	}
	return errors.New("journal.url: a log that servers share needs a cluster on Postgres: set cluster.enabled to true and database.url to postgres://…, or remove journal.url")
}

// minTrimInterval is the least pause between two rounds of retention of a shared log,
// each of which asks the brokers and the database.
const minTrimInterval = 10 * time.Second

// kafka returns the settings of a log in Kafka.
func (c Config) kafka() kafka.Config {
	return kafka.Config{
		URL: c.URL, Password: c.Password, Partitions: c.Partitions, ReplicationFactor: c.ReplicationFactor,
		AcceptWeakTopic: c.AcceptWeakTopic, AcceptOtherLog: c.AcceptOtherLog, Compression: c.Compression,
		MaxRecordBytes: c.MaxRecordBytes, MaxQueueBytes: c.MaxQueueBytes, MaxQueueRecords: c.MaxQueueRecords,
		AppendTimeout: c.AppendTimeout, StartTimeout: c.StartTimeout, TailBytes: c.TailBytes,
		MaxBytes: c.MaxBytes, MaxAge: c.MaxAge, TrimInterval: max(c.TrimInterval, minTrimInterval),
	}
}

// postgres returns the settings of a log in the database.
func (c Config) postgres() pglog.Config {
	return pglog.Config{
		Partitions: c.Partitions, AcceptWeakTopic: c.AcceptWeakTopic, AcceptOtherLog: c.AcceptOtherLog, Compression: c.Compression,
		MaxRecordBytes: c.MaxRecordBytes, MaxQueueBytes: c.MaxQueueBytes, MaxQueueRecords: c.MaxQueueRecords,
		AppendTimeout: c.AppendTimeout, StartTimeout: c.StartTimeout, TailBytes: c.TailBytes,
		MaxBytes: c.MaxBytes, MaxAge: c.MaxAge, TrimInterval: max(c.TrimInterval, minTrimInterval),
	}
}

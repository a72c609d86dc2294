package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is the section cluster of the configuration.
type Config struct {
	// Enabled makes the server a node of a cluster. It needs Postgres.
	Enabled bool `koanf:"enabled"`
	// Name is the name of the node for operators; empty: the name of the host.
	Name string `koanf:"name"`
	// Beat is the interval of the signs of life, and of looking at other nodes.
	Beat time.Duration `koanf:"beat"`
	// DeadAfter is how long the beat of a node does not change until other nodes
	// take its work over. A node that cannot write its beat gives everything up
	// after two thirds of it.
	DeadAfter time.Duration `koanf:"dead_after"`
}

// DefaultConfig is no cluster; a node would be dead after 6 seconds.
func DefaultConfig() Config { return Config{Beat: time.Second, DeadAfter: 6 * time.Second} }

// Validate reports intervals that do not fit together.
func (c Config) Validate() error {
	switch {
	case c.Beat < 10*time.Millisecond || c.Beat > time.Minute:
		return errors.New("beat must be between 10ms and 1m")
	case c.DeadAfter < 4*c.Beat:
		return fmt.Errorf("dead_after must be at least four times beat (%s), got %s", 4*c.Beat, c.DeadAfter)
	case c.DeadAfter > time.Hour:
		return errors.New("dead_after must be at most 1h")
	case len(c.Name) > 200:
		return errors.New("name must have at most 200 bytes")
	}
	return nil
}

// CheckDatabase reports a cluster on a database that is not Postgres.
func (c Config) CheckDatabase(url string) error {
	if !c.Enabled || IsPostgres(url) {
		return nil
	}
	return errNotPostgres
}

// IsPostgres reports whether the URL of a database names a Postgres server.
func IsPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

var errNotPostgres = errors.New("cluster.enabled: a cluster needs Postgres: set database.url to postgres://…, or turn cluster.enabled off")

// giveUpAfter is the age of the beat at which a node gives its leases up.
func (c Config) giveUpAfter() time.Duration { return c.DeadAfter * 2 / 3 }

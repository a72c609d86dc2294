package geoip

import (
	"errors"
	"time"
)

// Config names the file with locations.
type Config struct {
	// Database is the path of a MaxMind DB file with cities or countries, such as
	// GeoLite2-City.mmdb. Empty: events and flags have no location.
	Database string `koanf:"database"`
	// ReloadInterval is the time between two looks at the file.
	ReloadInterval time.Duration `koanf:"reload_interval"`
}

// DefaultConfig has no file.
func DefaultConfig() Config { return Config{ReloadInterval: 30 * time.Second} }

// Validate returns an error that names the invalid key. It does not look at the
// file, which may come later.
func (c Config) Validate() error {
	if c.ReloadInterval < 100*time.Millisecond {
		return errors.New("reload_interval must be 100ms or more")
	}
	return nil
}

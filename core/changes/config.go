package changes

import (
	"fmt"
	"time"
)

// Config bounds the streams of changes.
type Config struct {
	// MaxStreams is the maximum number of open streams. Half of the connections of
	// the public address is a further bound.
	MaxStreams int `koanf:"max_streams"`
	// ProjectStreams is the maximum number of open streams of one project.
	ProjectStreams int `koanf:"project_streams"`
	// ClientStreams is the maximum number of open streams of one client address
	// (IPv6: of a /64 network).
	ClientStreams int `koanf:"client_streams"`
	// PollInterval is how often changes are looked for while streams are open.
	PollInterval time.Duration `koanf:"poll_interval"`
	// Spread is the time over which a change is sent to many streams, so that their
	// clients do not all ask at once.
	Spread time.Duration `koanf:"spread"`
	// Heartbeat is the time between comments that keep idle streams open in proxies.
	Heartbeat time.Duration `koanf:"heartbeat"`
}

// DefaultConfig allows 20,000 streams, 10,000 of one project and 256 of one
// client, and notifies all of them within a second.
func DefaultConfig() Config {
	return Config{
		MaxStreams: 20_000, ProjectStreams: 10_000, ClientStreams: 256,
		PollInterval: 200 * time.Millisecond, Spread: 400 * time.Millisecond, Heartbeat: 25 * time.Second,
	}
}

// Validate returns an error that names the first invalid key, or nil.
func (c Config) Validate() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"max_streams", c.MaxStreams}, {"project_streams", c.ProjectStreams}, {"client_streams", c.ClientStreams}} {
		if n.value < 1 {
			return fmt.Errorf("%s must be at least 1, got %d", n.name, n.value)
		}
	}
	switch {
	case c.PollInterval < 10*time.Millisecond:
		return fmt.Errorf("poll_interval must be at least 10ms, got %s", c.PollInterval)
	case c.Spread < 0 || c.Spread > time.Minute:
		return fmt.Errorf("spread must be between 0 and 1m, got %s", c.Spread)
	case c.Heartbeat < time.Second:
		return fmt.Errorf("heartbeat must be at least 1s, got %s", c.Heartbeat)
	}
	return nil
}

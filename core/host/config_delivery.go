package host

import (
	"fmt"
	"reflect"
	"time"
)

// DeliveryConfig is the `delivery` section of a sink: which events it is sent,
// what of them, how many at once and how often. The plugin does not see it, and
// a change does not restart the plugin. The host only carries it; what it means
// and whether it makes sense is up to whoever delivers.
type DeliveryConfig struct {
	// Batch goes before the server's own sizes, within what the plugin says; a
	// zero leaves it to the plugin.
	Batch struct {
		MaxEvents   int           `koanf:"max_events"`
		MaxBytes    int           `koanf:"max_bytes"`
		Linger      time.Duration `koanf:"linger"`
		MaxInFlight int           `koanf:"max_in_flight"`
	} `koanf:"batch"`
	// Events names the events to send, * standing for any characters and ? for
	// one. An empty include is all.
	Events struct {
		Include []string `koanf:"include"`
		Exclude []string `koanf:"exclude"`
	} `koanf:"events"`
	// Projects names the projects whose events to send.
	Projects struct {
		Include []int64 `koanf:"include"`
		Exclude []int64 `koanf:"exclude"`
	} `koanf:"projects"`
	// Properties are filters as flags have them, with key, operator and value;
	// an event must pass all.
	Properties []map[string]any `koanf:"properties"`
	// Sample is the share of the distinct ids whose events are sent, always the
	// same ones; 0 and 1 are all.
	Sample float64 `koanf:"sample"`
	// Redact names properties that are taken away, or put as a hash, before the
	// plugin sees the event.
	Redact struct {
		Remove []string `koanf:"remove"`
		Hash   []string `koanf:"hash"`
		// HashKey is what makes the hash hard to guess; it may be a reference.
		HashKey string `koanf:"hash_key"`
	} `koanf:"redact"`
	// Retry is how a batch is tried again, and what becomes of it in the end:
	// dead_letter or hold.
	Retry struct {
		Initial     time.Duration `koanf:"initial"`
		Max         time.Duration `koanf:"max"`
		MaxAttempts int           `koanf:"max_attempts"`
		MaxAge      time.Duration `koanf:"max_age"`
		OnExhausted string        `koanf:"on_exhausted"`
	} `koanf:"retry"`
	// Staged bounds what the plugin may hold before it is told to make it safe.
	Staged struct {
		MaxEvents int           `koanf:"max_events"`
		MaxBytes  int           `koanf:"max_bytes"`
		MaxAge    time.Duration `koanf:"max_age"`
	} `koanf:"staged"`
}

// Delivery returns the delivery section of an instance, as the config of the
// moment has it, with references resolved. It is the zero value for a name that
// is not configured, and fails when a reference leads nowhere.
func (h *Host) Delivery(name string) (DeliveryConfig, error) {
	for _, c := range h.config().Instances {
		if c.Name != name {
			continue
		}
		d := c.Delivery
		key, _, err := expand(d.Redact.HashKey)
		if err != nil {
			return d, fmt.Errorf("delivery.redact.hash_key: %w", err)
		}
		d.Redact.HashKey = key
		return d, nil
	}
	return DeliveryConfig{}, nil
}

// sameDeliveries reports whether two configs deliver alike.
func sameDeliveries(a, b Config) bool {
	sections := func(c Config) map[string]DeliveryConfig {
		out := make(map[string]DeliveryConfig, len(c.Instances))
		for _, i := range c.Instances {
			out[i.Name] = i.Delivery
		}
		return out
	}
	return reflect.DeepEqual(sections(a), sections(b))
}

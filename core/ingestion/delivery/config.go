package delivery

import (
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/journal"
)

// Config is how events reach the sinks. The batch sizes of a sink override those
// here, within the same bounds.
type Config struct {
	// Start is where a new sink begins: "end" (events from now on) or "begin"
	// (also the events that the journal still keeps).
	Start string `koanf:"start"`
	// MaxEvents, MaxBytes and Linger bound a batch: it is sent when it is full by
	// either count, or when its first event has waited for Linger, which is multiplied by
	// the partitions that a process delivers, up to 1 s, unless the sink has its own.
	MaxEvents int           `koanf:"max_events"`
	MaxBytes  int           `koanf:"max_bytes"`
	Linger    time.Duration `koanf:"linger"`
	// MaxInFlight bounds the batches in flight to a sink that needs no total order.
	MaxInFlight int `koanf:"max_in_flight"`
	// Timeout ends a call that hangs, whatever the sink's own timeout.
	Timeout time.Duration `koanf:"timeout"`
	// RetryMin and RetryMax bound the growing pause after transient failures.
	RetryMin time.Duration `koanf:"retry_min"`
	RetryMax time.Duration `koanf:"retry_max"`
	// ConfigRetry is the pause before a sink that reports a wrong configuration is
	// called again, in case the other side was repaired.
	ConfigRetry time.Duration `koanf:"config_retry"`
	// MaxInternal bounds the attempts for a batch that fails the plugin internally,
	// before it is bisected and its failing event becomes a dead letter.
	MaxInternal int `koanf:"max_internal"`
	// ForgetAfter is how long the cursor of a removed sink is kept; until then the
	// journal keeps the events behind it.
	ForgetAfter time.Duration `koanf:"forget_after"`
}

// DefaultConfig sends small batches soon.
func DefaultConfig() Config {
	return Config{
		Start: "end", MaxEvents: 1000, MaxBytes: 2 << 20, Linger: 200 * time.Millisecond, MaxInFlight: 4,
		Timeout: time.Minute, RetryMin: 100 * time.Millisecond, RetryMax: 30 * time.Second,
		ConfigRetry: 5 * time.Minute, MaxInternal: 5, ForgetAfter: time.Hour,
	}
}

// start returns where a new sink begins.
func (c Config) start() journal.Start {
	if c.Start == "begin" {
		return journal.Begin
	}
	return journal.End
}

// Validate returns an error that names every invalid option by its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("ingestion.deliver.%s must be %s", key, must))
		}
	}
	check(c.Start == "end" || c.Start == "begin", "start", "end or begin")
	check(c.MaxEvents > 0, "max_events", "positive")
	check(c.MaxBytes > 0 && c.MaxBytes <= maxBatchBytes, "max_bytes", "positive and at most 4 MiB")
	check(c.Linger >= 0, "linger", "at least 0")
	check(c.MaxInFlight > 0 && c.MaxInFlight <= maxBatchesInFlight, "max_in_flight", "from 1 to 64")
	check(c.Timeout > 0, "timeout", "positive")
	check(c.RetryMin > 0 && c.RetryMax >= c.RetryMin, "retry_min", "positive and at most deliver.retry_max")
	check(c.ConfigRetry > 0, "config_retry", "positive")
	check(c.MaxInternal > 0, "max_internal", "positive")
	check(c.ForgetAfter >= 0, "forget_after", "at least 0")
	return errors.Join(errs...)
}

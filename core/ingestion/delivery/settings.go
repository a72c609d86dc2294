package delivery

import (
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
)

// The values of OnExhausted; "" is dead_letter.
const (
	exhaustedDeadLetter = "dead_letter" // the events become dead letters
	exhaustedHold       = "hold"        // the sink is paused
)

// Upper limits of batches, whatever the configuration.
const (
	maxBatchEvents     = 50_000
	maxBatchBytes      = 4 << 20
	maxLinger          = time.Minute
	maxSharedLinger    = time.Second // of Config, beside other partitions
	maxBatchesInFlight = 64
)

// ValidateSection returns an error that names every invalid option of a delivery
// section by its key.
func ValidateSection(c settings.Delivery) error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("delivery.%s must be %s", key, must))
		}
	}
	check(c.Batch.MaxEvents >= 0 && c.Batch.MaxEvents <= maxBatchEvents, "batch.max_events", "from 0 to 50000")
	check(c.Batch.MaxBytes >= 0 && c.Batch.MaxBytes <= maxBatchBytes, "batch.max_bytes", "from 0 to 4194304")
	check(c.Batch.Linger >= 0 && c.Batch.Linger <= maxLinger, "batch.linger", "from 0s to 1m")
	check(c.Batch.MaxInFlight >= 0 && c.Batch.MaxInFlight <= maxBatchesInFlight, "batch.max_in_flight", "from 0 to 64")
	check(c.Sample >= 0 && c.Sample <= 1, "sample", "from 0 to 1")
	check(c.Retry.Initial >= 0 && c.Retry.Max >= 0, "retry.initial", "at least 0, as retry.max")
	check(c.Retry.MaxAttempts >= 0 && c.Retry.MaxAge >= 0, "retry.max_attempts", "at least 0, as retry.max_age")
	switch c.Retry.OnExhausted {
	case "", exhaustedDeadLetter, exhaustedHold:
	default:
		check(false, "retry.on_exhausted", "dead_letter or hold")
	}
	check(c.Staged.MaxEvents >= 0 && c.Staged.MaxBytes >= 0 && c.Staged.MaxAge >= 0, "staged", "at least 0")
	_, err := filter.New(c, nil)
	return errors.Join(append(errs, err)...)
}

// sectionOf returns the sink's own delivery section, validated. A sink without one
// gets every event, with its own limits and those of Config.
func sectionOf(s Sink) (settings.Delivery, error) {
	own, ok := s.(interface {
		Delivery() (settings.Delivery, error)
	})
	if !ok {
		return settings.Delivery{}, nil
	}
	c, err := own.Delivery()
	if err == nil {
		err = ValidateSection(c)
	}
	return c, err
}

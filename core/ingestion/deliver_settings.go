package ingestion

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// SinkConfig is what an operator wants of the delivery to one sink. The zero
// value is everything, as the sink and DeliverConfig say.
//
// A Sink that has a config of its own tells it by a method
// Delivery() (SinkConfig, error). It is asked once; whose answer has changed
// has to be another Sink.
type SinkConfig struct {
	// Batch goes before the sizes of DeliverConfig, within what the sink says.
	Batch BatchConfig
	// Events and Projects say which events are sent; an empty include is all.
	Events   EventFilter
	Projects ProjectFilter
	// Properties are filters as flags have them (key, operator, value); an
	// event must pass all.
	Properties []json.RawMessage
	// Sample is the share of the distinct ids whose events are sent, from 0
	// to 1. Which they are does not change. 0 is all, as 1 is.
	Sample float64
	// Redact takes properties away before anything leaves the server.
	Redact RedactConfig
	// Retry is how long the sink is asked again.
	Retry RetryConfig
	// Staged bounds what the sink may hold without making it safe.
	Staged StagedConfig
}

// BatchConfig is how large a batch is and how many are on the way; a zero
// leaves it to the sink.
type BatchConfig struct {
	MaxEvents, MaxBytes int
	Linger              time.Duration
	MaxInFlight         int
}

// EventFilter names events; * stands for any characters, ? for one.
type EventFilter struct{ Include, Exclude []string }

// ProjectFilter names projects.
type ProjectFilter struct{ Include, Exclude []int64 }

// RedactConfig names properties of an event, and of the $set, $set_once,
// $unset and $group_set within it.
type RedactConfig struct {
	// Remove takes the property away, Hash puts a hash of its value in place.
	Remove, Hash []string
	// HashKey makes the hash one that cannot be guessed without it.
	HashKey string
}

// RetryConfig is how a batch is tried again that a sink answers with a failure
// that may pass. A sink that is away answers nothing: that is waited out.
type RetryConfig struct {
	// Initial and Max bound the growing pause; a zero takes DeliverConfig's.
	Initial, Max time.Duration
	// MaxAttempts and MaxAge end the trying; 0 is never.
	MaxAttempts int
	MaxAge      time.Duration
	// OnExhausted is dead_letter (the events are set aside) or hold (the sink
	// is paused); "" is dead_letter.
	OnExhausted string
}

// StagedConfig bounds what is staged; a zero leaves it to the sink.
type StagedConfig struct {
	MaxEvents, MaxBytes int
	MaxAge              time.Duration
}

// What to do with a batch that was tried often enough.
const (
	exhaustedDeadLetter = "dead_letter"
	exhaustedHold       = "hold"
)

// Validate reports everything that makes no sense, by its key.
func (c SinkConfig) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("delivery.%s must be %s", key, must))
		}
	}
	check(c.Batch.MaxEvents >= 0 && c.Batch.MaxEvents <= maxBatchEvents, "batch.max_events", "from 0 to 50000")
	check(c.Batch.MaxBytes >= 0 && c.Batch.MaxBytes <= maxBatchBytes, "batch.max_bytes", "from 0 to 4194304")
	check(c.Batch.Linger >= 0 && c.Batch.Linger <= maxLinger, "batch.linger", "from 0s to 1m")
	check(c.Batch.MaxInFlight >= 0 && c.Batch.MaxInFlight <= maxFlights, "batch.max_in_flight", "from 0 to 64")
	check(c.Sample >= 0 && c.Sample <= 1, "sample", "from 0 to 1")
	check(c.Retry.Initial >= 0 && c.Retry.Max >= 0, "retry.initial", "at least 0, as retry.max")
	check(c.Retry.MaxAttempts >= 0 && c.Retry.MaxAge >= 0, "retry.max_attempts", "at least 0, as retry.max_age")
	switch c.Retry.OnExhausted {
	case "", exhaustedDeadLetter, exhaustedHold:
	default:
		check(false, "retry.on_exhausted", "dead_letter or hold")
	}
	check(c.Staged.MaxEvents >= 0 && c.Staged.MaxBytes >= 0 && c.Staged.MaxAge >= 0, "staged", "at least 0")
	_, err := newRules(c)
	return errors.Join(append(errs, err)...)
}

// The most that can be asked for.
const (
	maxLinger  = time.Minute
	maxFlights = 64
)

// settingsOf asks a sink for the config that is its own.
func settingsOf(s Sink) (SinkConfig, error) {
	own, ok := s.(interface{ Delivery() (SinkConfig, error) })
	if !ok {
		return SinkConfig{}, nil
	}
	c, err := own.Delivery()
	if err == nil {
		err = c.Validate()
	}
	return c, err
}

// least is the smaller of two bounds of which 0 is none.
func least[T int | time.Duration](a, b T) T {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// sizes is how large a batch of this sink may be, and how long it may wait.
type sizes struct {
	events, bytes int
	linger        time.Duration
}

func (d *delivery) sizes() sizes {
	c, own, p := d.cfg.Deliver, d.own.Batch, d.sink.Properties()
	s := sizes{c.MaxEvents, c.MaxBytes, c.Linger}
	if n := least(own.MaxEvents, p.MaxEvents); n > 0 {
		s.events = min(n, maxBatchEvents)
	}
	if n := least(own.MaxBytes, p.MaxBytes); n > 0 {
		s.bytes = min(n, maxBatchBytes)
	}
	if l := least(own.Linger, p.Linger); l > 0 {
		s.linger = min(l, maxLinger)
	}
	return s
}

// flights is the most batches that may ever be on the way at once. Where order
// counts for all events, or for what a flush makes safe, it is one.
func (d *delivery) flights() int {
	p := d.sink.Properties()
	if p.Ordering == sdk.OrderTotal || p.Commit == sdk.CommitOnFlush {
		return 1
	}
	return max(1, min(p.MaxInFlight, least(d.own.Batch.MaxInFlight, d.cfg.Deliver.MaxInFlight)))
}

// maxBatchEvents is the most that is ever sent in one call.
const maxBatchEvents = 50_000

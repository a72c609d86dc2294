// Package ingestion takes events in and processes and delivers them.
//
// Package capture appends each request to the journal and answers. Behind the
// answer, readers of the journal (package reader) each have a cursor of their own.
// Package pipeline decodes records into events (package event) and hands them to
// the stages inside one database transaction that also carries its cursor, so that
// each event is processed exactly once. Package delivery sends the same events to
// every sink plugin, at least once and in order per distinct id.
//
// An event that is dropped or changed is counted and listed as a warning (package
// warning); one that fails becomes a dead letter (package deadletter), which
// package replay sends again. Package trace finds out where an event is.
//
// This package holds the configuration of all of them, their wiring, and the
// deletion of old rows.
package ingestion

import (
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
)

// Config is the configuration of ingestion.
type Config struct {
	// Limits bound a single event.
	Limits event.Limits `koanf:"limits"`
	// AcceptBytes bounds the memory of requests on their way to the journal, within
	// http.memory_bytes; beyond it a request gets 503. 0 is no bound of its own.
	AcceptBytes int `koanf:"accept_bytes"`
	// MaxBatchEvents bounds the events of one request; a larger one gets 413. 0 is
	// no bound.
	MaxBatchEvents int `koanf:"max_batch_events"`
	// Worker configures the pipeline.
	Worker pipeline.Config `koanf:"worker"`
	// Deliver configures the delivery to sinks.
	Deliver delivery.Config `koanf:"deliver"`
	// Quota limits the events of a project.
	Quota capture.QuotaConfig `koanf:"quota" live:"true"`
	// KeepWarnings is how long ingestion warnings are kept.
	KeepWarnings time.Duration `koanf:"keep_warnings" live:"true"`
	// KeepDeadLetters is how long dead letters are kept.
	KeepDeadLetters time.Duration `koanf:"keep_dead_letters" live:"true"`
}

// DefaultConfig suits a small server.
func DefaultConfig() Config {
	return Config{
		Limits:          event.DefaultLimits(),
		AcceptBytes:     96 << 20,
		MaxBatchEvents:  100_000,
		Worker:          pipeline.DefaultConfig(),
		Deliver:         delivery.DefaultConfig(),
		Quota:           capture.QuotaConfig{Period: capture.PerMonth, Projects: map[string]int64{}},
		KeepWarnings:    30 * 24 * time.Hour,
		KeepDeadLetters: 30 * 24 * time.Hour,
	}
}

// Validate returns an error that names every invalid option by its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("ingestion.%s must be %s", key, must))
		}
	}
	check(c.Limits.MaxEventBytes > 0, "limits.max_event_bytes", "positive")
	check(c.Limits.MaxDepth > 2 && c.Limits.MaxDepth <= 250, "limits.max_depth", "from 3 to 250")
	check(c.Limits.MaxProperties > 0, "limits.max_properties", "positive")
	check(c.AcceptBytes >= 0, "accept_bytes", "0 or more")
	check(c.MaxBatchEvents >= 0, "max_batch_events", "0 or more")
	errs = append(errs, c.Worker.Validate())
	check(c.KeepWarnings > 0, "keep_warnings", "positive")
	check(c.KeepDeadLetters > 0, "keep_dead_letters", "positive")
	return errors.Join(append(errs, c.Quota.Validate(), c.Deliver.Validate())...)
}

// Package ingestion takes events in and sees them through.
//
// A request becomes one journal record: Capture finds the project key in the
// body, checks that the body has one of the known shapes, and answers only
// when the record is on disk. Nothing else happens while the client waits.
//
// Behind the answer two kinds of readers walk the journal, each with a cursor
// of its own. The Worker decodes records into events and hands them, in order,
// to the stages (persons, event store, actions) inside one database
// transaction that also carries its cursor, so that an event is processed
// exactly once. Deliver hands the same events to every sink plugin, at least
// once and in order per distinct id, and no sink waits for another or for the
// database.
//
// Both use the same pure Decode, so an event has the same uuid, time and
// properties wherever it turns up. What a client sent and the room could not
// use is never silently gone: it is counted, remembered as a warning the
// project can read, or kept as a dead letter that can be replayed.
package ingestion

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/sdk"
)

// Stage does something with events in the worker's transaction. The worker
// calls its stages in the order they were given, one batch after the other,
// and an event is seen once: repeats have been taken out.
type Stage interface {
	// Name is for logs and dead letters: one word.
	Name() string
	// Process handles a batch inside the transaction that ctx carries. It may
	// change the events for the stages behind it. On an error nothing of the
	// batch is kept; the worker tries again, later with fewer events, and in
	// the end sets the event that fails every time aside as a dead letter.
	Process(ctx context.Context, batch []*sdk.Event) error
}

// Known tells which events have been processed before, by project and uuid.
type Known interface {
	// Known returns one answer an event. It runs in the transaction of ctx.
	Known(ctx context.Context, batch []*sdk.Event) ([]bool, error)
}

// Config is what an operator can say about ingestion.
type Config struct {
	// Limits bound a single event.
	Limits event.Limits `koanf:"limits"`
	// AcceptBytes bounds about how many bytes of requests are in memory on their
	// way to the journal; what is beyond gets 503. 0 is no bound.
	AcceptBytes int `koanf:"accept_bytes"`
	// Worker is how events are processed.
	Worker WorkerConfig `koanf:"worker"`
	// Deliver is how events reach the sinks.
	Deliver DeliverConfig `koanf:"deliver"`
	// Quota is how many events a project may send.
	Quota QuotaConfig `koanf:"quota"`
	// KeepWarnings is how long ingestion warnings can be read.
	KeepWarnings time.Duration `koanf:"keep_warnings"`
	// KeepDeadLetters is how long dead letters can be read and replayed.
	KeepDeadLetters time.Duration `koanf:"keep_dead_letters"`
}

// WorkerConfig is how events are processed.
type WorkerConfig struct {
	// MaxEvents and MaxBytes bound a transaction.
	MaxEvents int `koanf:"max_events"`
	MaxBytes  int `koanf:"max_bytes"`
	// Timeout ends a transaction that hangs; it is tried again.
	Timeout time.Duration `koanf:"timeout"`
	// RetryMin and RetryMax bound the growing pause while the database is down.
	RetryMin time.Duration `koanf:"retry_min"`
	RetryMax time.Duration `koanf:"retry_max"`
	// MaxPoison is how many events in a row may be set aside. When even more
	// fail the fault is not with the events: the worker stops and tries again.
	MaxPoison int `koanf:"max_poison"`
}

// DefaultConfig suits a small server.
func DefaultConfig() Config {
	return Config{
		Limits:      event.DefaultLimits(),
		AcceptBytes: 256 << 20,
		Worker: WorkerConfig{
			MaxEvents: 5000, MaxBytes: 16 << 20, Timeout: time.Minute,
			RetryMin: 100 * time.Millisecond, RetryMax: 10 * time.Second, MaxPoison: 100,
		},
		Deliver:         DefaultDeliverConfig(),
		Quota:           QuotaConfig{Period: PerMonth, Projects: map[string]int64{}},
		KeepWarnings:    30 * 24 * time.Hour,
		KeepDeadLetters: 30 * 24 * time.Hour,
	}
}

// Validate reports every option that makes no sense, by its key.
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
	check(c.Worker.MaxEvents > 0, "worker.max_events", "positive")
	check(c.Worker.MaxBytes > 0, "worker.max_bytes", "positive")
	check(c.Worker.Timeout > 0, "worker.timeout", "positive")
	check(c.Worker.RetryMin > 0 && c.Worker.RetryMax >= c.Worker.RetryMin, "worker.retry_min", "positive and at most worker.retry_max")
	check(c.Worker.MaxPoison > 0, "worker.max_poison", "positive")
	check(c.KeepWarnings > 0, "keep_warnings", "positive")
	check(c.KeepDeadLetters > 0, "keep_dead_letters", "positive")
	return errors.Join(append(errs, c.Quota.validate(), c.Deliver.validate())...)
}

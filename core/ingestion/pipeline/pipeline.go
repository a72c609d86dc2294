// Package pipeline processes the events of the journal, each exactly once.
//
// The Worker reads batches off the journal and hands them, in order, to the
// stages (persons, the event store, flag calls, definitions). The stages run in
// one database transaction that also writes the warnings of the batch and the
// worker's cursor, so a crash neither skips an event nor processes one twice.
//
// Events that are sent as they happen and imports (historical_migration) have a
// lane and a cursor each. An import yields to live events. Within a lane the
// order is kept.
//
// A database failure is waited out: capture goes on and the journal keeps the
// events. A batch that fails while the database is well is bisected until the
// failing event is found, which becomes a dead letter.
//
// A FollowerRunner reads the journal behind the worker for a Follower, such as
// notifications, that needs stored events but must not delay them.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Stage processes events in the worker's transaction. The worker calls its
// stages in the order given, one batch after the other, and each event once:
// duplicates are removed before.
type Stage interface {
	// Name is for logs and dead letters: one word.
	Name() string
	// Process handles a batch inside the transaction of ctx. It may change the
	// events for later stages. An error rolls the batch back; the worker retries
	// it, later with fewer events, and keeps the event that fails every time as a
	// dead letter.
	Process(ctx context.Context, batch []*sdk.Event) error
}

// Deduplicator finds events that have been processed before, by project and
// uuid.
type Deduplicator interface {
	// Known returns one answer per event. It runs in the transaction of ctx.
	Known(ctx context.Context, batch []*sdk.Event) ([]bool, error)
}

// Config bounds the batches of the worker and its retries.
type Config struct {
	// MaxEvents and MaxBytes bound a transaction.
	MaxEvents int `koanf:"max_events"`
	MaxBytes  int `koanf:"max_bytes"`
	// Linger is the shortest time between the starts of two transactions that are not
	// full. An event that comes after a longer pause is processed at once; under a
	// steady trickle the events of this time share a transaction. Workers of several
	// partitions in one process multiply it by their number, up to 250 ms.
	Linger time.Duration `koanf:"linger"`
	// Timeout ends a transaction that hangs; it is retried.
	Timeout time.Duration `koanf:"timeout"`
	// RetryMin and RetryMax bound the growing pause while the database is down.
	RetryMin time.Duration `koanf:"retry_min"`
	RetryMax time.Duration `koanf:"retry_max"`
	// MaxPoison bounds the consecutive events that become dead letters. If more
	// fail, the events are not the cause: the worker stops and retries.
	MaxPoison int `koanf:"max_poison"`
}

// maxLinger bounds Linger: events are visible later by as much.
const maxLinger = time.Second

// DefaultConfig suits a small server.
func DefaultConfig() Config {
	return Config{
		MaxEvents: 5000, MaxBytes: 16 << 20, Linger: 50 * time.Millisecond, Timeout: time.Minute,
		RetryMin: 100 * time.Millisecond, RetryMax: 10 * time.Second, MaxPoison: 100,
	}
}

// Validate returns an error that names every invalid option by its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("ingestion.worker.%s must be %s", key, must))
		}
	}
	check(c.MaxEvents > 0, "max_events", "positive")
	check(c.Linger >= 0 && c.Linger <= maxLinger, "linger", "from 0s to 1s")
	check(c.MaxBytes > 0, "max_bytes", "positive")
	check(c.Timeout > 0, "timeout", "positive")
	check(c.RetryMin > 0 && c.RetryMax >= c.RetryMin, "retry_min", "positive and at most worker.retry_max")
	check(c.MaxPoison > 0, "max_poison", "positive")
	return errors.Join(errs...)
}

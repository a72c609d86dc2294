// Package flagcalls counts the stored calls of several flags, by time and answer.
//
// A database answers flag by flag from the index events_by_flag, without reading events;
// ClickHouse counts all flags in one columnar query. The cost is that of the calls in the
// range, about 0.8 s for a million on SQLite, so a query has a time budget, which starts when
// it may scan.
package flagcalls

import (
	"context"
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/events"
)

// Event is the name of the event that reports a call.
const Event = "$feature_flag_called"

// Query selects the calls of flags in [From, To), which is cut into intervals of Width.
type Query struct {
	ProjectID int64
	Keys      []string // each once, in the order in which they are counted
	From, To  time.Time
	Width     time.Duration
	Budget    time.Duration // how long it reads
}

// MaxCounts bounds the counts of a key: answers are texts of clients, of any number.
const MaxCounts = 50_000

// Count is the number of calls with one answer in one interval.
type Count struct {
	Interval int64
	Response string // "" for calls without an answer
	Calls    int64
}

// Result has the calls of a key.
type Result struct {
	Counted bool    // false: it has more than MaxCounts counts, or was read for the whole budget
	Counts  []Count // all of them; for the time of the call of Visit
}

// Visit receives the result of a key. It is not called for a key that was not reached:
// the budget ended before, or while it was read after others.
type Visit func(key string, r Result)

// Backend counts calls until ctx ends, and calls fn at most once for each key, in any order.
// If ctx ends, it calls fn for the keys that it read for the whole time, and fails.
type Backend interface {
	FlagCalls(ctx context.Context, q *Query, fn Visit) error
}

// Counter counts calls in the event store. It is safe for concurrent use.
type Counter struct {
	db      *db.DB
	backend Backend
}

// New returns a Counter on the backend of the event store s, which keeps the rest in d.
func New(d *db.DB, s *events.Service) *Counter {
	backend, ok := s.Backend().(Backend)
	if !ok {
		backend = store{d}
	}
	return &Counter{db: d, backend: backend}
}

var errNoPlace = scan.ErrBusy.After(5 * time.Second)

// Counts calls fn with the results of the keys that it reaches. It waits for a place for
// scans, then reads for at most the budget of q. It fails with Unavailable if there was no
// place in time, and with the error of ctx if that ended while it read. An exhausted budget
// is not an error: the remaining keys have no result.
func (c *Counter) Counts(ctx context.Context, q *Query, fn Visit) error {
	if len(q.Keys) == 0 {
		return nil
	}
	ran := false
	err := c.db.RunScan(ctx, q.ProjectID, func(scan context.Context) error {
		ran = true
		bounded, cancel := context.WithTimeout(scan, q.Budget)
		defer cancel()
		err := c.backend.FlagCalls(bounded, q, func(key string, r Result) {
			if r.Counted || ctx.Err() == nil { // a request that was given up did not have the budget
				fn(key, r)
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && errors.Is(bounded.Err(), context.DeadlineExceeded) {
			return nil
		}
		return err
	})
	if !ran && errors.Is(err, context.DeadlineExceeded) {
		return errNoPlace.Because(err)
	}
	return err
}

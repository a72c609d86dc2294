// Package health keeps the last known state of the ClickHouse that has the events, and of the
// outbox, for readiness and metrics.
package health

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// The states of a Status.
const (
	Starting    = "starting"    // ClickHouse was not asked yet
	OK          = "ok"          // its last answer was good
	Unavailable = "unavailable" // it cannot be reached
	Refused     = "refused"     // it answers, and does not take events: an operator has to act
)

// Status is the field "events" of readiness. Events wait in the outbox until State is ok.
type Status struct {
	State   string    `json:"state"`
	Since   time.Time `json:"since"`
	Message string    `json:"message,omitempty"`
	// DeletionError is why ClickHouse does not delete the events of erasures. It is apart
	// from State: insertions go on.
	DeletionError string `json:"deletion_error,omitempty"`
	Outbox        Outbox `json:"outbox"`
}

// Degraded implements the interface of core/web/health.
func (s Status) Degraded() bool { return s.Down() || s.DeletionError != "" }

// Down reports that ClickHouse does not take events.
func (s Status) Down() bool { return s.State == Unavailable || s.State == Refused }

// Outbox are the figures of the events that wait for ClickHouse, at most some seconds old.
type Outbox struct {
	Batches       int64   `json:"batches"`
	Events        int64   `json:"events"`
	Bytes         int64   `json:"bytes"` // compressed
	OldestSeconds float64 `json:"oldest_seconds"`
}

// Tracker has the last known Status. It is safe for concurrent use.
type Tracker struct {
	mu     sync.Mutex
	status Status

	Failures prometheus.Counter // insertions that failed
	Inserted prometheus.Counter // events that were inserted
}

// Current returns the status.
func (h *Tracker) Current() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// Record keeps the outcome of a request to ClickHouse. Errors of the database change nothing.
func (h *Tracker) Record(err error) {
	state, message := OK, ""
	var answer *wire.Error
	switch {
	case err == nil:
	case errors.As(err, &answer) && answer.Reached:
		state, message = Refused, err.Error()
	case errors.As(err, &answer):
		state, message = Unavailable, answer.Error()
	default:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.status.State != state {
		h.status.Since = time.Now().UTC()
	}
	h.status.State, h.status.Message = state, message
}

// RecordDeletion keeps the outcome of deletions; nil if nothing is in their way. Errors of the
// database change nothing.
func (h *Tracker) RecordDeletion(err error) {
	text := ""
	if err != nil {
		if _, ok := errors.AsType[*wire.Error](err); !ok {
			return
		}
		text = err.Error()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.DeletionError = text
}

// SetOutbox keeps the figures of the outbox.
func (h *Tracker) SetOutbox(o Outbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Outbox = o
}

// New returns a Tracker with the state Starting.
func New() *Tracker {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &Tracker{
		status:   Status{State: Starting, Since: time.Now().UTC()},
		Failures: counter("guidon_events_outbox_insert_failures_total", "Insertions into ClickHouse that failed."),
		Inserted: counter("guidon_events_outbox_inserted_total", "Events that this node inserted into ClickHouse."),
	}
}

// Register registers the metrics of the outbox.
func (h *Tracker) Register(reg prometheus.Registerer) error {
	gauge := func(name, help string, value func(Status) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(h.Current()) })
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		h.Failures, h.Inserted,
		gauge("guidon_events_clickhouse_up", "0 while ClickHouse cannot be reached or refuses events, else 1.", func(st Status) float64 {
			if st.Down() {
				return 0
			}
			return 1
		}),
		gauge("guidon_events_deletion_failing", "1 while ClickHouse does not delete the events of erasures, else 0.", func(st Status) float64 {
			if st.DeletionError != "" {
				return 1
			}
			return 0
		}),
		gauge("guidon_events_outbox_batches", "Rows of the outbox: batches of events that wait for ClickHouse.", func(st Status) float64 { return float64(st.Outbox.Batches) }),
		gauge("guidon_events_outbox_events", "Events that wait for ClickHouse.", func(st Status) float64 { return float64(st.Outbox.Events) }),
		gauge("guidon_events_outbox_bytes", "Compressed bytes of the events that wait for ClickHouse.", func(st Status) float64 { return float64(st.Outbox.Bytes) }),
		gauge("guidon_events_outbox_oldest_seconds", "Age of the oldest batch that waits for ClickHouse.", func(st Status) float64 { return st.Outbox.OldestSeconds }),
	} {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}

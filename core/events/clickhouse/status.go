package clickhouse

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/events"
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
	Outbox  Outbox    `json:"outbox"`
}

// Degraded implements the interface of core/web/health.
func (s Status) Degraded() bool { return s.State == Unavailable || s.State == Refused }

// Outbox are the figures of the events that wait for ClickHouse, at most some seconds old.
type Outbox struct {
	Batches       int64   `json:"batches"`
	Events        int64   `json:"events"`
	Bytes         int64   `json:"bytes"` // compressed
	OldestSeconds float64 `json:"oldest_seconds"`
}

// health is the last known state of ClickHouse and of the outbox.
type health struct {
	mu     sync.Mutex
	status Status

	failures prometheus.Counter
	inserted prometheus.Counter
}

var _ events.StatusReporter = (*Store)(nil)

// Status implements events.StatusReporter.
func (s *Store) Status() any { return s.health.current() }

func (h *health) current() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// record keeps the outcome of a request to ClickHouse. Errors of the database change nothing.
func (h *health) record(err error) {
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

// ask finds out whether ClickHouse works again after a failure, when no events wait for it.
func (s *Store) ask(ctx context.Context) error {
	if !s.health.current().Degraded() {
		return nil
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	err := s.client.Exec(ctx, "SELECT 1", nil, nil)
	if err == nil {
		s.health.record(nil)
	}
	return err
}

// figuresEvery is the time between two readings of the figures of the outbox.
const figuresEvery = 5 * time.Second

// watch reads the figures of the outbox until ctx ends.
func (s *Store) watch(ctx context.Context) {
	for {
		figures, err := s.readFigures(ctx)
		if err == nil {
			s.health.mu.Lock()
			s.health.status.Outbox = figures
			s.health.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(figuresEvery):
		}
	}
}

func newHealth() health {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return health{
		status:   Status{State: Starting, Since: time.Now().UTC()},
		failures: counter("guidon_events_outbox_insert_failures_total", "Insertions into ClickHouse that failed."),
		inserted: counter("guidon_events_outbox_inserted_total", "Events that this node inserted into ClickHouse."),
	}
}

// Register registers the metrics of the outbox.
func (s *Store) Register(reg prometheus.Registerer) error {
	gauge := func(name, help string, value func(Status) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(s.health.current()) })
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		s.health.failures, s.health.inserted,
		gauge("guidon_events_clickhouse_up", "0 while ClickHouse cannot be reached or refuses events, else 1.", func(st Status) float64 {
			if st.Degraded() {
				return 0
			}
			return 1
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

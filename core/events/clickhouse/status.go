package clickhouse

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/events"
)

var _ events.StatusReporter = (*Store)(nil)

// Status implements events.StatusReporter: a health.Status.
func (s *Store) Status() any { return s.health.Current() }

// Register registers the metrics of the outbox.
func (s *Store) Register(reg prometheus.Registerer) error { return s.health.Register(reg) }

// ask finds out whether ClickHouse works again after a failure, when no events wait for it.
func (s *Store) ask(ctx context.Context) error {
	if !s.health.Current().Down() {
		return nil
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	err := s.client.Exec(ctx, "SELECT 1", nil, nil)
	if err == nil {
		s.health.Record(nil)
	}
	return err
}

// figuresEvery is the time between two readings of the figures of the outbox.
const figuresEvery = 5 * time.Second

// watch reads the figures of the outbox until ctx ends.
func (s *Store) watch(ctx context.Context) {
	for {
		if figures, err := s.readFigures(ctx); err == nil {
			s.health.SetOutbox(figures)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(figuresEvery):
		}
	}
}

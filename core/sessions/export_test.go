package sessions

import (
	"context"
	"time"
)

// After makes the service work as if the time had passed.
func (s *Service) After(passed time.Duration) {
	s.now = func() time.Time { return time.Now().Add(passed) }
}

// SaveUsage saves the last requests, as the Service does every minute.
func (s *Service) SaveUsage(ctx context.Context) error { return s.saveUsage(ctx) }

// Clean deletes what has ended, as the Service does every hour.
func (s *Service) Clean(ctx context.Context) error {
	return s.store.clean(ctx, s.now().Add(-keepEnded), s.cfg.Idle)
}

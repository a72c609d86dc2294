package invitation

import (
	"testing"
	"time"
)

// After makes the service work as if the time had passed.
func (s *Service) After(t *testing.T, passed time.Duration) {
	t.Helper()
	s.now = func() time.Time { return time.Now().Add(passed) }
}

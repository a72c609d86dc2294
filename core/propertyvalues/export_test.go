package propertyvalues

import "time"

// SetTime sets the time of a sample.
func (s *Service) SetTime(d time.Duration) { s.time = d }

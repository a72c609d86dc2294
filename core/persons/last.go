package persons

import "time"

// LastRead are the properties that were read last.
type LastRead struct {
	Properties []byte // a JSON object that must not be changed
	Found      bool   // false if the person or group did not exist
	At         time.Time
}

// LastProperties returns what Properties read last, however long ago, and false if
// memory does not have it: it was never read, the memory of the cache was needed, or the
// person was merged or erased by this process since. A change by the ingestion shows at
// the next successful Properties. It reads no database.
func (s *Service) LastProperties(projectID int64, distinctID string) (LastRead, bool) {
	return s.lastRead(cacheKey{projectID, noGroup, distinctID})
}

// LastGroupProperties is LastProperties for a group.
func (s *Service) LastGroupProperties(projectID int64, groupType, groupKey string) (LastRead, bool) {
	slot, ok := s.cache.lastGroupType(projectID, groupType)
	if !ok {
		return LastRead{}, false
	}
	return s.lastRead(cacheKey{projectID, slot, groupKey})
}

func (s *Service) lastRead(key cacheKey) (LastRead, bool) {
	e, ok := s.cache.last(key)
	return LastRead{Properties: e.properties, Found: e.found, At: e.at}, ok
}

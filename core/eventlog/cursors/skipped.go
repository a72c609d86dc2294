package cursors

import "sync"

// skipped has, for statistics, the records without work that readers of this process have
// read behind their cursors. A cursor moves over them later, because that is a transaction.
type skipped struct {
	mu sync.Mutex
	to map[Key]uint64
}

// Skip notes that a reader has no work in the records through a number.
func (s *Store) Skip(k Key, through uint64) {
	s.skipped.mu.Lock()
	defer s.skipped.mu.Unlock()
	if s.skipped.to == nil {
		s.skipped.to = map[Key]uint64{}
	}
	s.skipped.to[k] = through
}

// Behind returns the number after which a reader may have work: that of its cursor, or what
// this process has skipped since.
func (s *Store) Behind(log string, c Cursor) uint64 {
	s.skipped.mu.Lock()
	defer s.skipped.mu.Unlock()
	return max(c.Position.Seq, s.skipped.to[Key{log, c.Partition, c.Reader}])
}

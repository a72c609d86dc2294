package erasure

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// idHash is the keyed hash of a project and a distinct id.
type idHash [sha256.Size]byte

// hashID hashes a distinct id with the key of the installation, which a backup of
// the database holds, too. The parts before the id have fixed lengths.
func hashID(key []byte, projectID int64, distinctID string) idHash {
	buf := make([]byte, 0, 512)
	buf = append(buf, key...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(projectID))
	return sha256.Sum256(append(buf, distinctID...))
}

// memory holds the erasures that readers of the journal still have to know. It is
// empty most of the time: an erasure leaves it when all readers are behind its
// record.
//
// Transactions of the pipeline hold the lock for reading from before they filter
// until they have ended. So when publish returns, no transaction is running that
// does not know the erasure.
type memory struct {
	mu    sync.RWMutex
	key   []byte
	marks map[int64]map[idHash]mark // by project
	some  atomic.Bool               // there are marks
}

func (m *memory) begin() (end func()) {
	m.mu.RLock()
	return m.mu.RUnlock
}

// publish adds an erasure and waits for the running transactions.
func (m *memory) publish(e *Erasure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range e.DistinctIDs {
		h := hashID(m.key, e.ProjectID, id)
		m.set(e.ProjectID, h, m.marks[e.ProjectID][h].add(e))
	}
}

func (m *memory) set(projectID int64, h idHash, k mark) {
	if m.marks == nil {
		m.marks = map[int64]map[idHash]mark{}
	}
	if m.marks[projectID] == nil {
		m.marks[projectID] = map[idHash]mark{}
	}
	m.marks[projectID][h] = k
	m.some.Store(true)
}

// verdict returns the verdict for an event of a record. The caller is inside
// begin and end.
func (m *memory) verdict(projectID int64, distinctID string, seq uint64) Verdict {
	marks := m.marks[projectID]
	if len(marks) == 0 {
		return Keep
	}
	return marks[hashID(m.key, projectID, distinctID)].verdict(seq)
}

// covers reports whether the marks concern all records before the one of an erasure.
func (m *memory) covers(e *Erasure) bool {
	for _, id := range e.DistinctIDs {
		k := m.marks[e.ProjectID][hashID(m.key, e.ProjectID, id)]
		if k.personSeq < e.Seq || e.Events && k.eventsSeq < e.Seq {
			return false
		}
	}
	return true
}

// prune removes the erasures whose records all readers have passed.
func (m *memory) prune(passed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for project, marks := range m.marks {
		for h, k := range marks {
			if k.personSeq <= passed {
				delete(marks, h)
			}
		}
		if len(marks) == 0 {
			delete(m.marks, project)
		}
	}
	m.some.Store(len(m.marks) > 0)
}

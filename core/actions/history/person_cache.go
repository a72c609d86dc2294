package history

import (
	"container/list"
	"slices"
	"sync"

	"github.com/guidonhq/guidon/core/events"
)

// personCache keeps person sets, most recently used first, in bounded memory.
// Concurrent requests for the same set share one search.
type personCache struct {
	limit int

	mu       sync.Mutex
	size     int
	order    *list.List // of *cachedSet
	entries  map[personSetKey]*list.Element
	searches map[personSetKey]*search
}

type personSetKey struct {
	projectID   int64
	fingerprint string
	from, to    int64
}

type cachedSet struct {
	key personSetKey
	set *personSet
}

func (k *cachedSet) size() int { return 256 + 8*len(k.set.ids) }

// search is one search for a person set. The other fields are set once done is
// closed.
type search struct {
	done chan struct{}
	set  *personSet
	err  error
}

func newPersonCache(limit int) *personCache {
	return &personCache{
		limit: limit, order: list.New(), entries: map[personSetKey]*list.Element{}, searches: map[personSetKey]*search{},
	}
}

func (m *personCache) get(key personSetKey) *personSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if e == nil {
		return nil
	}
	m.order.MoveToFront(e)
	return e.Value.(*cachedSet).set
}

// startSearch returns the search for a set. If mine, the caller performs it.
func (m *personCache) startSearch(key personSetKey) (s *search, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.searches[key]; s != nil {
		return s, false
	}
	s = &search{done: make(chan struct{})}
	m.searches[key] = s
	return s, true
}

// finishSearch ends a search with its result.
func (m *personCache) finishSearch(key personSetKey, s *search, c *personSet, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.searches, key)
	s.set, s.err = c, err
	close(s.done)
	if err == nil {
		m.put(&cachedSet{key, c})
	}
}

func (m *personCache) put(k *cachedSet) {
	m.drop(m.entries[k.key])
	m.entries[k.key] = m.order.PushFront(k)
	m.size += k.size()
	for m.size > m.limit {
		m.drop(m.order.Back())
	}
}

// correct removes a deleted person from the sets of its project that are valid at
// the checkpoint before the change, and makes them valid at the one after it.
// Erased events whose persons are deleted already change no set. Other sets, and
// those with undecided events, are searched again by the next request.
func (m *personCache) correct(e *events.Erased) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, element := range m.entries {
		entry := element.Value.(*cachedSet)
		cp := entry.set.checkpoint
		if key.projectID != e.ProjectID || cp.Erased != e.Before.Erased || cp.Persons != e.Before.Persons || entry.set.undecided > 0 {
			continue
		}
		changed := *entry.set
		changed.checkpoint.Erased, changed.checkpoint.Persons = e.After.Erased, e.After.Persons
		if i, found := slices.BinarySearch(changed.ids, e.PersonID); found {
			changed.ids = slices.Delete(slices.Clone(changed.ids), i, i+1)
			m.size -= 8
		}
		entry.set = &changed
	}
}

func (m *personCache) drop(e *list.Element) {
	if e == nil {
		return
	}
	k := m.order.Remove(e).(*cachedSet)
	delete(m.entries, k.key)
	m.size -= k.size()
}

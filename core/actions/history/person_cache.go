package history

import (
	"container/list"
	"sync"
)

// peopleMemory keeps crowds, the latest asked for first, in a bounded memory,
// and lets all who look for the same crowd share one search.
type peopleMemory struct {
	limit int

	mu       sync.Mutex
	size     int
	order    *list.List // of *keptCrowd
	kept     map[peopleKey]*list.Element
	searches map[peopleKey]*search
}

type peopleKey struct {
	projectID   int64
	fingerprint string
	from, to    int64
}

type keptCrowd struct {
	key   peopleKey
	crowd *crowd
}

func (k *keptCrowd) size() int { return 256 + 8*len(k.crowd.ids) }

// search is one looking for a crowd. The others are set once done is closed.
type search struct {
	done  chan struct{}
	crowd *crowd
	err   error
}

func newPeopleMemory(limit int) *peopleMemory {
	return &peopleMemory{
		limit: limit, order: list.New(), kept: map[peopleKey]*list.Element{}, searches: map[peopleKey]*search{},
	}
}

func (m *peopleMemory) get(key peopleKey) *crowd {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.kept[key]
	if e == nil {
		return nil
	}
	m.order.MoveToFront(e)
	return e.Value.(*keptCrowd).crowd
}

// join returns the search for a crowd, and whether it is the caller's to do.
func (m *peopleMemory) join(key peopleKey) (s *search, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.searches[key]; s != nil {
		return s, false
	}
	s = &search{done: make(chan struct{})}
	m.searches[key] = s
	return s, true
}

// leave ends a search with what it found.
func (m *peopleMemory) leave(key peopleKey, s *search, c *crowd, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.searches, key)
	s.crowd, s.err = c, err
	close(s.done)
	if err == nil {
		m.put(&keptCrowd{key, c})
	}
}

func (m *peopleMemory) put(k *keptCrowd) {
	m.drop(m.kept[k.key])
	m.kept[k.key] = m.order.PushFront(k)
	m.size += k.size()
	for m.size > m.limit {
		m.drop(m.order.Back())
	}
}

func (m *peopleMemory) drop(e *list.Element) {
	if e == nil {
		return
	}
	k := m.order.Remove(e).(*keptCrowd)
	delete(m.kept, k.key)
	m.size -= k.size()
}

package history

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/actions/history/background"
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
	key  personSetKey
	plan *plan
	set  *personSet
}

func (k *cachedSet) size() int { return 256 + 8*len(k.set.ids) }

// search is one search for a person set.
type search struct {
	plan     *plan
	progress background.Counter
	done     chan struct{}
	// Set once done is closed:
	set *personSet
	err error

	changes []*events.Erased // since the search began; belongs to the cache

	mu        sync.Mutex
	found     map[int64]struct{} // persons so far
	undecided int64
}

// add adds persons that were found.
func (s *search) add(ids []int64, undecided int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.found[id] = struct{}{}
	}
	s.undecided += undecided
}

// known returns the persons that are known: those found so far, and those of an
// older set, which may be nil.
func (s *search) known(old *personSet) *personSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &personSet{undecided: s.undecided, ids: slices.Collect(maps.Keys(s.found))}
	if old != nil {
		out.ids = append(out.ids, old.ids...)
	}
	slices.Sort(out.ids)
	out.ids = slices.Compact(out.ids)
	return out
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
func (m *personCache) startSearch(key personSetKey, p *plan) (s *search, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.searches[key]; s != nil {
		return s, false
	}
	s = &search{plan: p, done: make(chan struct{}), found: map[int64]struct{}{}}
	m.searches[key] = s
	return s, true
}

// finishSearch ends a search with its result, corrected for the changes since it
// began.
func (m *personCache) finishSearch(key personSetKey, s *search, c *personSet, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.searches, key)
	if err == nil {
		entry := &cachedSet{key, s.plan, c}
		for _, e := range s.changes {
			entry.correct(e)
		}
		c = entry.set
		m.put(entry)
	}
	s.set, s.err = c, err
	close(s.done)
}

func (m *personCache) put(k *cachedSet) {
	m.drop(m.entries[k.key])
	m.entries[k.key] = m.order.PushFront(k)
	m.size += k.size()
	for m.size > m.limit {
		m.drop(m.order.Back())
	}
}

// correct corrects the sets of a project, and those that are being searched, for a
// merge, a deleted person or erased events.
func (m *personCache) correct(e *events.Erased) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, element := range m.entries {
		if entry := element.Value.(*cachedSet); key.projectID == e.ProjectID {
			m.size -= entry.size()
			entry.correct(e)
			m.size += entry.size()
		}
	}
	for key, s := range m.searches {
		if key.projectID == e.ProjectID {
			s.changes = append(s.changes, e)
		}
	}
}

// correct replaces the set by one that is valid after a change, if the set was valid
// before it and the change says how. Otherwise the next request searches again.
func (k *cachedSet) correct(e *events.Erased) {
	cp := k.set.checkpoint
	if cp.Erased != e.Before.Erased || cp.Persons != e.Before.Persons || !k.correctable(e) {
		return
	}
	changed := *k.set
	changed.checkpoint.Erased, changed.checkpoint.Persons = e.After.Erased, e.After.Persons
	if i, found := slices.BinarySearch(changed.ids, e.PersonID); found && e.PersonID != 0 {
		changed.ids = slices.Delete(slices.Clone(changed.ids), i, i+1)
		if at, found := slices.BinarySearch(changed.ids, e.MergedInto); !found && e.MergedInto != 0 {
			changed.ids = slices.Insert(changed.ids, at, e.MergedInto)
		}
	}
	k.set = &changed
}

// correctable reports whether a change of the set follows from e. Erased events whose
// persons are deleted change no set, nor do those that the set does not depend on.
func (k *cachedSet) correctable(e *events.Erased) bool {
	switch {
	case len(e.Events) == 0:
		return e.MergedInto != 0 || k.set.undecided == 0
	case k.set.undecided > 0:
		return false
	case !e.Owned:
		return true
	}
	inTime := slices.ContainsFunc(e.Events, func(e events.HistoryEvent) bool {
		at := e.Event.Timestamp.UnixMicro()
		return (k.key.from == noTime || at >= k.key.from) && (k.key.to == noTime || at < k.key.to)
	})
	if !inTime {
		return true
	}
	fitting, ok := matchErased(k.plan, e)
	return ok && len(fitting) == 0
}

// noTime is the key of the zero time.
var noTime = time.Time{}.UnixMicro()

func (m *personCache) drop(e *list.Element) {
	if e == nil {
		return
	}
	k := m.order.Remove(e).(*cachedSet)
	delete(m.entries, k.key)
	m.size -= k.size()
}

// expire makes the sets of a project that begin after the deleted events valid after
// the deletion. Other sets are searched again by the next request.
func (m *personCache) expire(e *events.Expired) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, element := range m.entries {
		entry := element.Value.(*cachedSet)
		cp := entry.set.checkpoint
		if key.projectID != e.ProjectID || cp.Erased != e.Before.Erased || key.from < e.To.UnixMicro() {
			continue
		}
		changed := *entry.set
		changed.checkpoint.Erased = e.After.Erased
		entry.set = &changed
	}
}

package persons

import (
	"sync"
	"time"
)

// cacheKey names what is cached: the properties of the person behind a
// distinct id (slot is none), or of a group.
type cacheKey struct {
	project int64
	slot    int
	id      string
}

const none = -1

// cached is the answer of the store: that there is nothing is one, too.
type cached struct {
	properties []byte
	person     int64 // 0 for groups and for nobody
	found      bool
	at         time.Time
}

// cache holds answers of the store for a short time, in two generations: the
// young one is filled, and when it is half of what the cache may hold, it
// becomes the old one and what was old is gone. What is asked for again moves
// up, so that what is in use stays.
//
// A reader that met the store before a commit must not put its answer in after
// it. So forget moves the epoch on, and put refuses an answer from an earlier
// one.
type cache struct {
	half int // bytes of a generation
	ttl  time.Duration

	mu         sync.RWMutex
	epoch      uint64
	young, old generation
	types      map[int64]cachedTypes
}

type generation struct {
	entries  map[cacheKey]cached
	byPerson map[int64][]cacheKey
	bytes    int
}

type cachedTypes struct {
	types map[string]int
	at    time.Time
}

func newGeneration() generation {
	return generation{entries: map[cacheKey]cached{}, byPerson: map[int64][]cacheKey{}}
}

func newCache(bytes int, ttl time.Duration) *cache {
	return &cache{
		half: bytes / 2, ttl: ttl, young: newGeneration(), old: newGeneration(), types: map[int64]cachedTypes{},
	}
}

// get returns what is cached and still believed, and the epoch for put.
func (c *cache) get(key cacheKey, now time.Time) (answer cached, ok bool, epoch uint64) {
	c.mu.RLock()
	answer, ok = c.young.entries[key]
	var moved bool
	if !ok {
		answer, ok = c.old.entries[key]
		moved = ok
	}
	epoch = c.epoch
	c.mu.RUnlock()
	if ok && now.Sub(answer.at) >= c.ttl {
		return cached{}, false, epoch
	}
	if moved {
		c.put(key, answer, epoch)
	}
	return answer, ok, epoch
}

// put remembers an answer that was true in the given epoch.
func (c *cache) put(key cacheKey, answer cached, epoch uint64) {
	const overhead = 250 // of the two maps, measured
	size := len(answer.properties) + len(key.id) + overhead
	if size > c.half || c.ttl == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return
	}
	if _, there := c.young.entries[key]; there {
		c.young.remove(key)
	}
	if c.young.bytes+size > c.half {
		c.old, c.young = c.young, newGeneration()
	}
	c.young.entries[key] = answer
	c.young.bytes += size
	if answer.person != 0 {
		c.young.byPerson[answer.person] = append(c.young.byPerson[answer.person], key)
	}
}

func (g *generation) remove(key cacheKey) {
	e, ok := g.entries[key]
	if !ok {
		return
	}
	delete(g.entries, key)
	if e.person == 0 {
		return
	}
	keys := g.byPerson[e.person]
	for i := range keys {
		if keys[i] == key {
			keys[i] = keys[len(keys)-1]
			keys = keys[:len(keys)-1]
			break
		}
	}
	if len(keys) == 0 {
		delete(g.byPerson, e.person)
		return
	}
	g.byPerson[e.person] = keys
}

func (g *generation) removePerson(id int64) {
	for _, key := range g.byPerson[id] {
		delete(g.entries, key)
	}
	delete(g.byPerson, id)
}

// groupTypes returns the cached types of a project; the map is never changed.
func (c *cache) groupTypes(project int64, now time.Time) (map[string]int, bool, uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.types[project]
	if !ok || now.Sub(t.at) >= c.ttl {
		return nil, false, c.epoch
	}
	return t.types, true, c.epoch
}

func (c *cache) putGroupTypes(project int64, types map[string]int, now time.Time, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch == c.epoch {
		c.types[project] = cachedTypes{types, now}
	}
}

// forget drops what a committed batch changed.
func (c *cache) forget(b *book) {
	var persons []int64
	for _, p := range b.known {
		if p.into != nil || p.next != p.loaded {
			persons = append(persons, p.id)
		}
	}
	var keys []cacheKey
	for _, l := range b.links {
		keys = append(keys, cacheKey{b.project, none, l.distinctID})
	}
	for _, g := range b.groups.list {
		if g.next != g.stored {
			keys = append(keys, cacheKey{b.project, g.index, g.key})
		}
	}
	if len(persons)+len(keys)+len(b.groups.newTypes) > 0 {
		c.drop(b.project, persons, keys)
	}
}

// drop forgets persons, keys and the group types of a project.
func (c *cache) drop(project int64, persons []int64, keys []cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for _, g := range []*generation{&c.young, &c.old} {
		for _, id := range persons {
			g.removePerson(id)
		}
		for _, key := range keys {
			g.remove(key)
		}
	}
	delete(c.types, project)
}

// clear forgets the group types of a project and all its groups.
func (c *cache) clear(project int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for _, g := range []*generation{&c.young, &c.old} {
		for key := range g.entries {
			if key.project == project && key.slot != none {
				delete(g.entries, key)
			}
		}
	}
	delete(c.types, project)
}

package persons

import (
	"slices"
	"sync"
)

// wanted is what has to be loaded before a batch can be thought through. The
// lists are sorted and without repeats.
type wanted struct {
	ids    []string  // distinct ids whose persons count
	merged []string  // those among them that take part in a merge
	types  bool      // the group types of the project
	groups []nameKey // groups that are described
}

// nameKey names a group by its type's name.
type nameKey struct{ name, key string }

func want(part []*fact) *wanted {
	w := &wanted{}
	seen := make(map[string]bool, len(part))
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			w.ids = append(w.ids, id)
		}
	}
	for _, f := range part {
		add(f.ev.DistinctID)
		if f.merge {
			add(f.other)
			w.merged = append(w.merged, f.other, f.ev.DistinctID)
		}
		w.types = w.types || f.groups != "" || f.groupIdentify
		if f.groupIdentify {
			w.groups = append(w.groups, nameKey{f.groupType, f.groupKey})
		}
	}
	slices.Sort(w.ids)
	slices.Sort(w.merged)
	w.merged = slices.Compact(w.merged)
	return w
}

// lonerSet remembers which distinct ids are known to be stored as seen without
// a person, so that each is written about once. It forgets everything when it
// has grown large; writing one again does no harm.
type lonerSet struct {
	mu  sync.Mutex
	ids map[lonerID]bool
}

type lonerID struct {
	project int64
	id      string
}

const maxLoners = 100_000

func (l *lonerSet) has(project int64, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[lonerID{project, id}]
}

func (l *lonerSet) add(project int64, ids []string) {
	if len(ids) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil || len(l.ids)+len(ids) > maxLoners {
		l.ids = make(map[lonerID]bool, len(ids))
	}
	for _, id := range ids {
		l.ids[lonerID{project, id}] = true
	}
}

package stage

import (
	"slices"
	"sync"
)

// loadPlan lists what must be loaded before a batch can be applied. The lists
// are sorted and without duplicates.
type loadPlan struct {
	ids    []string  // distinct ids whose persons are needed
	merged []string  // those that take part in a merge
	types  bool      // the group types of the project
	groups []nameKey // groups to be updated
}

// nameKey names a group by the name of its type.
type nameKey struct{ name, key string }

func planLoad(part []*parsedEvent) *loadPlan {
	w := &loadPlan{}
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

// personlessCache holds distinct ids that are known to be stored as personless,
// so that each is written about once. It is cleared when it is full; writing an
// id again is harmless.
type personlessCache struct {
	mu  sync.Mutex
	ids map[personlessID]bool
}

type personlessID struct {
	project int64
	id      string
}

const maxPersonlessCached = 100_000

func (l *personlessCache) has(project int64, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[personlessID{project, id}]
}

func (l *personlessCache) add(project int64, ids []string) {
	if len(ids) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil || len(l.ids)+len(ids) > maxPersonlessCached {
		l.ids = make(map[personlessID]bool, len(ids))
	}
	for _, id := range ids {
		l.ids[personlessID{project, id}] = true
	}
}

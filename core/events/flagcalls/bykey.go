package flagcalls

import "slices"

// ByKey gathers counts that come key by key, for Visit.
type ByKey struct {
	fn     Visit
	left   []string
	key    string
	counts []Count
}

// NewByKey returns a ByKey for the keys of q.
func NewByKey(q *Query, fn Visit) *ByKey { return &ByKey{fn: fn, left: slices.Clone(q.Keys)} }

// Add adds a count of a key, after all of the keys before.
func (b *ByKey) Add(key string, c Count) {
	if key != b.key {
		b.next(key)
	}
	b.counts = append(b.counts, c)
}

// End reports the last key and the keys without counts. With ok false they are reported as
// not counted.
func (b *ByKey) End(ok bool) {
	if ok {
		b.next("")
	}
	for _, key := range b.left {
		b.fn(key, Result{Counted: ok})
	}
}

func (b *ByKey) next(key string) {
	if i := slices.Index(b.left, b.key); i >= 0 {
		b.left = slices.Delete(b.left, i, i+1)
		b.fn(b.key, Result{Counted: len(b.counts) <= MaxCounts, Counts: b.counts})
	}
	b.key, b.counts = key, b.counts[:0]
}

package definition

import (
	"maps"
	"slices"
)

// Table is the definitions of one kind with their compiled forms. A compiled form has
// a place, which it keeps as long as its definition exists: others refer to it by its
// place. The zero value is empty.
type Table[D, T any] struct {
	Stored []*D    // by id
	Order  []int32 // the place of each of Stored
	Items  []*T    // by place; nil for a free place, and for a definition to compile
	places map[int64]int32
}

// Clone returns a copy that can be changed without an effect on t.
func (t *Table[D, T]) Clone() Table[D, T] {
	n := *t
	n.Items = slices.Clone(t.Items)
	return n
}

// Place returns the place of the definition with an id.
func (t *Table[D, T]) Place(id int64) (int32, bool) {
	at, ok := t.places[id]
	return at, ok
}

// Free returns the number of free places.
func (t *Table[D, T]) Free() int { return len(t.Items) - len(t.Stored) }

// Update replaces the definitions of t. It calls drop for the compiled form of each
// definition that changed or is gone; new and changed definitions have none
// afterwards.
func Update[D, T any, P Item[D]](t *Table[D, T], list []D, drop func(*T)) Changes[D] {
	c := Compare[D, P](t.Stored, list)
	t.Stored = c.Next
	if len(c.Added)+len(c.Removed) > 0 {
		move[D, T, P](t, &c, drop)
	}
	for _, p := range c.Changed {
		at := t.places[P(p.New).id()]
		drop(t.Items[at])
		t.Items[at] = nil
	}
	return c
}

// move frees the places of removed definitions and gives places to added ones.
func move[D, T any, P Item[D]](t *Table[D, T], c *Changes[D], drop func(*T)) {
	if t.places = maps.Clone(t.places); t.places == nil {
		t.places = make(map[int64]int32, len(c.Added))
	}
	for _, d := range c.Removed {
		id := P(d).id()
		at := t.places[id]
		drop(t.Items[at])
		t.Items[at] = nil
		delete(t.places, id)
	}
	free := 0
	for _, d := range c.Added {
		for free < len(t.Items) && t.Items[free] != nil {
			free++
		}
		if free == len(t.Items) {
			t.Items = append(t.Items, nil)
		}
		t.places[P(d).id()] = int32(free)
		free++
	}
	t.Order = make([]int32, len(t.Stored))
	for i, d := range t.Stored {
		t.Order[i] = t.places[P(d).id()]
	}
}

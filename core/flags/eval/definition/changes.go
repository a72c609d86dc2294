package definition

import (
	"cmp"
	"slices"
)

// Item is a pointer to a Flag or to a Cohort.
type Item[T any] interface {
	*T
	id() int64
	isDeleted() bool
	equal(other *T) bool
}

// Changes are the differences between two lists of definitions.
type Changes[T any] struct {
	Next    []*T // the new list without deleted ones, by id; equal ones are those of the old list
	Added   []*T // of the new list
	Changed []Pair[T]
	Removed []*T // of the old list
}

// Pair is the two forms of a definition that changed.
type Pair[T any] struct{ Old, New *T }

// Compare returns the differences between a list that an earlier Compare returned as
// Next and a list in any order. It keeps no reference to the new list.
func Compare[T any, P Item[T]](old []*T, list []T) Changes[T] {
	c := Changes[T]{Next: make([]*T, 0, len(list))}
	if !sorted[T, P](list) {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(P(&a).id(), P(&b).id()) })
	}
	for i := range list {
		item := P(&list[i])
		if item.isDeleted() {
			continue
		}
		for len(old) > 0 && P(old[0]).id() < item.id() {
			c.Removed, old = append(c.Removed, old[0]), old[1:]
		}
		switch known := len(old) > 0 && P(old[0]).id() == item.id(); {
		case known && item.equal(old[0]):
			c.Next = append(c.Next, old[0])
			old = old[1:]
		case known:
			made := list[i]
			c.Next, c.Changed = append(c.Next, &made), append(c.Changed, Pair[T]{Old: old[0], New: &made})
			old = old[1:]
		default:
			made := list[i]
			c.Next, c.Added = append(c.Next, &made), append(c.Added, &made)
		}
	}
	c.Removed = append(c.Removed, old...)
	return c
}

func sorted[T any, P Item[T]](list []T) bool {
	for i := 1; i < len(list); i++ {
		if P(&list[i-1]).id() > P(&list[i]).id() {
			return false
		}
	}
	return true
}

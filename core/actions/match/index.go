package match

import (
	"slices"

	"github.com/guidonhq/guidon/core/match"
)

// Index holds the definitions of a project by the event names they match, so
// that an event costs only the definitions that can match it. It is immutable
// and safe for concurrent use.
type Index struct {
	byName  map[string][]Entry
	anyName []Entry // definitions with a step for every event name
	size    int
}

// Entry is one definition in an Index.
type Entry struct {
	ID      int64
	Matcher *Matcher
}

// NewIndex returns the index of the given definitions. It leaves out those
// that never match.
func NewIndex(entries []Entry) *Index {
	x := &Index{byName: map[string][]Entry{}}
	for _, e := range entries {
		x.add(e)
	}
	return x
}

func (x *Index) add(e Entry) {
	var names []string
	for i := range e.Matcher.steps {
		t := &e.Matcher.steps[i]
		switch {
		case t.problem != nil:
			continue
		case t.event == "":
			x.anyName = append(x.anyName, e)
			x.size++
			return
		case !slices.Contains(names, t.event):
			names = append(names, t.event)
		}
	}
	for _, name := range names {
		x.byName[name] = append(x.byName[name], e)
	}
	if len(names) > 0 {
		x.size++
	}
}

// Len returns the number of definitions.
func (x *Index) Len() int {
	if x == nil {
		return 0
	}
	return x.size
}

// Has reports whether any definition can match events of this name.
func (x *Index) Has(event string) bool {
	return x != nil && (len(x.anyName) > 0 || len(x.byName[event]) > 0)
}

// MatchEach calls fn for each definition that the event fits (True) or that
// cannot be decided (Unknown), each at most once, and for no other. Each
// definition gets a part of the work of an event if env has a budget. It
// allocates nothing of its own. A nil Index has no definitions.
func (x *Index) MatchEach(s *EventView, env *match.Env, fn func(id int64, r match.Result)) {
	if x == nil {
		return
	}
	left := int64(maxEventWork)
	for _, list := range [2][]Entry{x.byName[s.event.Name], x.anyName} {
		for i := range list {
			if env.Budget != nil {
				env.Budget.Reset(min(maxActionWork, left))
			}
			if r := list[i].Matcher.Match(s, env); r != match.False {
				fn(list[i].ID, r)
			}
			if env.Budget != nil {
				left -= env.Budget.Spent()
			}
		}
	}
}

// Needs returns what the definitions that can match events of this name read.
// It is computed by each call.
func (x *Index) Needs(event string) Needs {
	var n Needs
	if x != nil {
		for _, list := range [2][]Entry{x.byName[event], x.anyName} {
			for i := range list {
				n.add(list[i].Matcher)
			}
		}
	}
	n.normalize()
	return n
}

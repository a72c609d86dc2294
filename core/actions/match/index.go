package match

import (
	"slices"

	"github.com/guidonhq/guidon/core/match"
)

// Index is the definitions of a project by the event names they ask for, so
// that an event costs what the definitions that can match it cost. It is
// immutable and safe for parallel use.
type Index struct {
	byName  map[string][]Entry
	anyName []Entry // those with a step for events of any name
	size    int
}

// Entry is one definition in an Index.
type Entry struct {
	ID      int64
	Matcher *Matcher
}

// NewIndex returns the index of the given definitions. Those that can never
// match are left out.
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

// Len returns how many definitions there are.
func (x *Index) Len() int {
	if x == nil {
		return 0
	}
	return x.size
}

// Has reports whether any definition may match events of this name.
func (x *Index) Has(event string) bool {
	return x != nil && (len(x.anyName) > 0 || len(x.byName[event]) > 0)
}

// MatchEach calls fn for each definition that the event fits (True) or that
// cannot be decided (Unknown), each at most once, and never for others. It
// allocates nothing of its own. A nil Index has no definitions.
func (x *Index) MatchEach(s *EventView, env *match.Env, fn func(id int64, r match.Result)) {
	if x == nil {
		return
	}
	for _, list := range [2][]Entry{x.byName[s.event.Name], x.anyName} {
		for i := range list {
			if r := list[i].Matcher.Match(s, env); r != match.False {
				fn(list[i].ID, r)
			}
		}
	}
}

// Needs returns what the definitions that may match events of this name can
// ask for. It is worked out anew each time.
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

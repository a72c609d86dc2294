package eval

import (
	"slices"
	"strings"
)

// Scope is the part of a request that limits the flags in its answer besides their
// keys. The zero value limits nothing.
type Scope struct {
	Runtime  Runtime
	Contexts []string // evaluation contexts; none means all flags
	Prefix   string   // of flag keys
}

// includes reports whether a client gets the flag.
func (s *Scope) includes(f *flag) bool {
	return (s.Runtime == AnyRuntime || f.runtime == AnyRuntime || f.runtime == s.Runtime) &&
		s.inContext(f) && strings.HasPrefix(f.key, s.Prefix)
}

// inContext reports whether the flag has no contexts, or shares one.
func (s *Scope) inContext(f *flag) bool {
	return len(s.Contexts) == 0 || len(f.contexts) == 0 ||
		slices.ContainsFunc(f.contexts, func(name string) bool { return slices.Contains(s.Contexts, name) })
}

// Limit leaves the flags out that the scope does not include. Call it after Select
// and before Run. A flag of other contexts is off for the flags that depend on it,
// as it is in clients that evaluate locally; a flag of another runtime keeps its
// value for them. The evaluation refers to s.Contexts until Release.
func (e *Evaluation) Limit(s Scope) {
	if !e.set.scoped && s.Prefix == "" {
		return
	}
	e.scope = s
	if e.trace != nil {
		return // explanations include the flags that are left out
	}
	if e.scoped == nil {
		e.scoped = []int32{} // a nil selection means all flags
	}
	e.scoped = e.scoped[:0]
	for _, at := range e.selected() {
		if s.includes(e.set.flags[at]) {
			e.scoped = append(e.scoped, at)
		}
	}
	e.selection = e.scoped
}

// IsScoped reports whether the answer of a request depends on its runtime or
// contexts.
func (e *Evaluation) IsScoped() bool { return e.set.scoped }

package eval

import (
	"cmp"
	"slices"

	"github.com/guidonhq/guidon/core/flags/eval/definition"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/flags/eval/schema"
	"github.com/guidonhq/guidon/core/match"
)

// CompileOptions are the inputs of a compilation besides the definitions.
type CompileOptions struct {
	// Operators finds the operators of plugins. Nil disables them.
	Operators match.Registry
	// Limits bound the regular expressions. A flag or cohort over a limit is
	// not compiled, and is left out like one that cannot be decoded. Zero fields
	// have the defaults.
	Limits match.Limits
	// Budget is the work on texts that one evaluation may cause. A flag that
	// needs more fails with CauseBudget. 0 is match.DefaultBudget.
	Budget int64
}

// Compile prepares a project's flags for evaluation. It never fails: a flag
// whose definition cannot be decoded is kept with its error and left out of
// every answer; the other flags are unaffected. The set is immutable and safe
// for concurrent use.
func Compile(defs []Definition, cohorts []CohortDefinition, groupTypes map[string]int, opts CompileOptions) *Set {
	c := newCompiler(newSet(groupTypes, opts), opts)
	c.build(defs, cohorts)
	return c.set
}

// Set is the compiled flags of one project at one moment. The place of a flag stays
// the same in the sets that Update returns; a place without a flag is nil.
type Set struct {
	flags      []*flag // by place, of table
	table      definition.Table[Definition, flag]
	byKey      map[string]int32
	active     []int32  // places by id
	scoped     bool     // some active flag has a runtime or contexts
	byDevice   bool     // some active flag buckets by device
	located    bool     // some filter reads the location of the person
	continuous []string // keys of the active flags with experience continuity

	people      schema.Schema
	groups      []groupKind
	groupTypes  map[string]int32 // name to place in groups
	cohorts     []*cohort        // by place, of cohortTable
	cohortTable definition.Table[CohortDefinition, cohort]

	limits   match.Limits
	budget   int64 // units of work of one evaluation
	overfull bool  // a definition is left out because of the limit of the project
	uncut    uncut // what breakCycles replaced
}

func newSet(groupTypes map[string]int, opts CompileOptions) *Set {
	s := &Set{
		byKey:      map[string]int32{},
		groupTypes: make(map[string]int32, len(groupTypes)),
		limits:     opts.Limits.WithDefaults(),
		budget:     cmp.Or(opts.Budget, match.DefaultBudget),
	}
	for name, index := range groupTypes {
		s.groups = append(s.groups, groupKind{name: name, index: index})
	}
	slices.SortFunc(s.groups, func(a, b groupKind) int { return cmp.Compare(a.index, b.index) })
	for i, g := range s.groups {
		s.groupTypes[g.name] = int32(i)
	}
	return s
}

// EachDefinition calls fn with what each flag was compiled from, in the order of the
// ids, and with the place of the flag. Update keeps the place and the pointer of a
// flag that did not change. fn must not change it.
func (s *Set) EachDefinition(fn func(place int, d *Definition)) {
	for i, at := range s.table.Order {
		fn(int(at), s.table.Stored[i])
	}
}

// Places returns a number that is larger than the place of every flag.
func (s *Set) Places() int { return len(s.flags) }

// groupKind is one type of group of the project.
type groupKind struct {
	name   string
	index  int
	schema schema.Schema
}

// Keys returns the keys of the active flags.
func (s *Set) Keys() []string {
	keys := make([]string, len(s.active))
	for i, at := range s.active {
		keys[i] = s.flags[at].key
	}
	return keys
}

// Broken returns by flag key why active flags cannot be evaluated: their
// definition cannot be decoded, or is over a limit.
func (s *Set) Broken() map[string]error {
	out := map[string]error{}
	for _, at := range s.active {
		if f := s.flags[at]; f.broken != nil {
			out[f.key] = f.broken
		}
	}
	return out
}

// BrokenCohorts is Broken for cohorts, by id.
func (s *Set) BrokenCohorts() map[int64]error {
	out := map[int64]error{}
	for _, c := range s.cohorts {
		if c != nil && c.broken != nil {
			out[c.id] = c.broken
		}
	}
	return out
}

// Problem returns why the flag with the id cannot be evaluated, or nil.
func (s *Set) Problem(id int64) error {
	if at, ok := s.table.Place(id); ok {
		return s.flags[at].broken
	}
	return nil
}

// KeyByID returns the key of the flag with the id.
func (s *Set) KeyByID(id int64) (string, bool) {
	if at, ok := s.table.Place(id); ok {
		return s.flags[at].key, true
	}
	return "", false
}

// ReadsPersonProperty reports whether a filter of the set, or an operator of a
// plugin in it, reads the property of persons.
func (s *Set) ReadsPersonProperty(name string) bool { return s.people.Uses(name) }

// HasActive reports whether some flag is active.
func (s *Set) HasActive() bool { return len(s.active) > 0 }

// compiler is the state of one compilation.
type compiler struct {
	set      *Set
	opts     match.Options
	programs filters.Programs
	uses     *uses // of the definition that is being compiled
}

func newCompiler(s *Set, opts CompileOptions) *compiler {
	return &compiler{
		set: s, opts: match.Options{Registry: opts.Operators, Limits: s.limits}, programs: filters.Programs{Limits: s.limits},
	}
}

// subject returns the subject of an aggregation index: person for nil, else the
// place of the group type, or unknownGroup.
func (c *compiler) subject(index *int) int32 {
	if index == nil {
		return person
	}
	for i, g := range c.set.groups {
		if g.index == *index {
			return int32(i)
		}
	}
	return unknownGroup
}

// Subjects that are not the place of a group type.
const (
	person       int32 = -1
	unknownGroup int32 = -2
)

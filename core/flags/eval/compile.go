package eval

import (
	"cmp"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/flags/eval/filters"
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
	live := make([]Definition, 0, len(defs))
	for _, d := range defs {
		if !d.Deleted {
			live = append(live, d)
		}
	}
	slices.SortStableFunc(live, func(a, b Definition) int { return cmp.Compare(a.ID, b.ID) })
	limits := opts.Limits.WithDefaults()
	c := &compiler{
		opts:     match.Options{Registry: opts.Operators, Limits: limits},
		programs: filters.Programs{Limits: limits},
		byID:     make(map[int64]int32, len(live)),
		set: &Set{
			flags:      make([]flag, len(live)),
			byKey:      make(map[string]int32, len(live)),
			groupTypes: make(map[string]int32, len(groupTypes)),
			budget:     cmp.Or(opts.Budget, match.DefaultBudget),
			stored:     live,
		},
	}
	c.groups(groupTypes)
	for i, d := range live {
		c.byID[d.ID] = int32(i)
		c.set.byKey[d.Key] = int32(i)
	}
	c.cohorts(cohorts)
	for i := range live {
		c.flag(&c.set.flags[i], &live[i])
	}
	c.breakCycles()
	for name := range c.set.people.slots {
		c.set.located = c.set.located || strings.HasPrefix(name, "$geoip_")
	}
	return c.set
}

// Set is the compiled flags of one project at one moment.
type Set struct {
	flags      []flag // by id
	byKey      map[string]int32
	active     []int32
	scoped     bool     // some active flag has a runtime or contexts
	byDevice   bool     // some active flag buckets by device
	located    bool     // some filter reads the location of the person
	continuous []string // keys of the active flags with experience continuity

	people     schema
	groups     []groupKind
	groupTypes map[string]int32 // name to place in groups
	cohorts    []cohort

	budget int64        // units of work of one evaluation
	stored []Definition // of flags
}

// Definitions returns what the flags were compiled from, ordered by id.
func (s *Set) Definitions() []Definition { return s.stored }

// schema assigns a slot to every property that a filter reads. Filters use slots,
// so that a request looks up each name once. Most properties of a request have
// no slot; nameFilter rejects nearly all of them without a map lookup.
type schema struct {
	slots      map[string]int32
	nameFilter [4]uint64 // a Bloom filter of the names, by hash8
}

// hash8 returns a cheap 8-bit hash of a name.
func hash8(name string) uint8 {
	if name == "" {
		return 0
	}
	n := len(name)
	return uint8(n)*31 + name[0] + name[n/2]*7 + name[n-1]*13
}

func (s *schema) find(name string) (int32, bool) {
	if l := hash8(name); s.nameFilter[l>>6]&(1<<(l&63)) == 0 {
		return 0, false
	}
	at, ok := s.slots[name]
	return at, ok
}

func (s *schema) slot(key string) int32 {
	if at, ok := s.slots[key]; ok {
		return at
	}
	if s.slots == nil {
		s.slots = map[string]int32{}
	}
	at := int32(len(s.slots))
	s.slots[key] = at
	l := hash8(key)
	s.nameFilter[l>>6] |= 1 << (l & 63)
	return at
}

// groupKind is one type of group of the project.
type groupKind struct {
	name   string
	index  int
	schema schema
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
		if f := &s.flags[at]; f.broken != nil {
			out[f.key] = f.broken
		}
	}
	return out
}

// BrokenCohorts is Broken for cohorts, by id.
func (s *Set) BrokenCohorts() map[int64]error {
	out := map[int64]error{}
	for i := range s.cohorts {
		if c := &s.cohorts[i]; c.broken != nil {
			out[c.id] = c.broken
		}
	}
	return out
}

// Problem returns why the flag with the id cannot be evaluated, or nil.
func (s *Set) Problem(id int64) error {
	at, ok := slices.BinarySearchFunc(s.flags, id, func(f flag, id int64) int { return cmp.Compare(f.id, id) })
	if !ok {
		return nil
	}
	return s.flags[at].broken
}

// KeyByID returns the key of the flag with the id.
func (s *Set) KeyByID(id int64) (string, bool) {
	for i := range s.flags {
		if s.flags[i].id == id {
			return s.flags[i].key, true
		}
	}
	return "", false
}

// ReadsPersonProperty reports whether a filter of the set, or an operator of a
// plugin in it, reads the property of persons.
func (s *Set) ReadsPersonProperty(name string) bool {
	_, ok := s.people.slots[name]
	return ok
}

// HasActive reports whether some flag is active.
func (s *Set) HasActive() bool { return len(s.active) > 0 }

// compiler is the state of one compilation.
type compiler struct {
	set       *Set
	opts      match.Options
	byID      map[int64]int32
	cohortsBy map[int64]int32
	programs  filters.Programs
}

func (c *compiler) groups(types map[string]int) {
	for name, index := range types {
		c.set.groups = append(c.set.groups, groupKind{name: name, index: index})
	}
	slices.SortFunc(c.set.groups, func(a, b groupKind) int { return cmp.Compare(a.index, b.index) })
	for i, g := range c.set.groups {
		c.set.groupTypes[g.name] = int32(i)
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

func (c *compiler) schemaOf(subject int32) *schema {
	if subject >= 0 {
		return &c.set.groups[subject].schema
	}
	return &c.set.people
}

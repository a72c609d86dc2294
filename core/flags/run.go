package flags

import (
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/match"
)

// run is one request going through a set: what is known about its subjects,
// what came out so far, and what still has to be read. Runs are reused; a
// slot or a membership is valid when it carries the run's own turn.
type run struct {
	set      *Set
	turn     uint32
	pass     uint8
	env      match.Env
	trace    *tracer
	cause    Cause // why the last unknown result is unknown
	chosen   []int32
	outcomes []outcome

	person     subject
	anonymous  string
	groups     []subject
	cohorts    []membership
	lists      reading // of static cohorts
	listsWant  bool
	inLists    []int64
	hashKeys   reading // of experience continuity
	hashWant   bool
	hashKey    map[string]string
	plugins    answers
	ahead      bool  // looking ahead for questions to plugins
	hashed     *flag // whose bucket hashedTo is
	hashedFor  int32
	hashedTo   float64
	hash       []byte
	arena      []byte
	visiting   *subject
	visitFrom  source
	visitIn    *schema
	visitSlots func(name []byte, v *fastjson.Value)
}

// subject is a person or a group, and what is known about it.
type subject struct {
	id     string
	given  bool
	stored reading
	wanted bool // stored properties have to be read
	slots  []slot
	parser fastjson.Parser
}

// slot is one property of a subject.
type slot struct {
	value match.Value
	turn  uint32
	from  source
}

// source says where a property came from.
type source uint8

const (
	fromRequest source = iota
	fromStore
	fromIdentity // the distinct id or the group key itself
)

// reading is how far reading something stored has come.
type reading uint8

const (
	unread reading = iota
	read
	unreadable
)

type membership struct {
	turn   uint32
	pass   uint8
	result match.Result
}

var runs = sync.Pool{New: func() any {
	r := &run{}
	r.visitSlots = r.fillSlot
	return r
}}

// newRun takes a run for one request. The caller gives it back with release,
// after which nothing that came from it may be used.
func newRun(set *Set, distinctID string, now time.Time) *run {
	r := runs.Get().(*run)
	r.set, r.pass, r.trace, r.anonymous = set, 0, nil, ""
	r.turn++
	if r.turn == 0 {
		r.forget()
	}
	r.env = match.Env{Now: now}
	r.hashed, r.arena, r.inLists, r.chosen = nil, r.arena[:0], r.inLists[:0], nil
	r.lists, r.listsWant, r.hashKeys, r.hashWant, r.hashKey = unread, false, unread, false, nil
	r.plugins.reset()
	r.env.External = &r.plugins
	r.outcomes = slices.Grow(r.outcomes[:0], len(set.flags))[:len(set.flags)]
	clear(r.outcomes)
	r.cohorts = sized(r.cohorts, len(set.cohorts))
	r.person.begin(distinctID, len(set.people.slots))
	r.person.given = true
	r.groups = sized(r.groups, len(set.groups))
	for i := range r.groups {
		r.groups[i].begin("", len(set.groups[i].schema.slots))
	}
	r.know(&r.person, &set.people, "distinct_id", distinctID)
	return r
}

// sized is s with n elements, what it held before kept as it is.
func sized[T any](s []T, n int) []T {
	if n > cap(s) {
		s = append(s[:cap(s)], make([]T, n-cap(s))...)
	}
	return s[:n]
}

func (s *subject) begin(id string, slots int) {
	s.id, s.given, s.stored, s.wanted = id, false, unread, false
	s.slots = sized(s.slots, slots)
}

// forget makes everything that carries an old turn invalid, once in four
// thousand million requests.
func (r *run) forget() {
	clear(r.person.slots[:cap(r.person.slots)])
	for i := range r.groups[:cap(r.groups)] {
		clear(r.groups[:cap(r.groups)][i].slots)
	}
	clear(r.cohorts[:cap(r.cohorts)])
	r.turn = 1
}

const keptBytes = 1 << 20

// release gives the run back.
func (r *run) release() {
	if cap(r.arena) > keptBytes {
		r.arena = nil
	}
	r.set, r.trace, r.chosen, r.hashed, r.hashKey, r.visiting, r.visitIn = nil, nil, nil, nil, nil, nil, nil
	runs.Put(r)
}

// know sets a property that follows from who the subject is.
func (r *run) know(s *subject, in *schema, name, value string) {
	if at, ok := in.find(name); ok {
		s.slots[at] = slot{value: match.Text(value), turn: r.turn, from: fromIdentity}
	}
}

// fill lays properties of a JSON object into the slots of a subject. Those of
// the request replace what is there, stored ones only fill what is empty.
func (r *run) fill(s *subject, in *schema, from source, o *fastjson.Object) {
	if o == nil || len(in.slots) == 0 {
		return
	}
	r.visiting, r.visitIn, r.visitFrom = s, in, from
	o.Visit(r.visitSlots)
}

func (r *run) fillSlot(name []byte, v *fastjson.Value) {
	at, ok := r.visitIn.find(textView(name))
	if !ok {
		return
	}
	sl := &r.visiting.slots[at]
	if r.visitFrom == fromStore && sl.turn == r.turn && sl.from != fromStore {
		return
	}
	sl.turn, sl.from = r.turn, r.visitFrom
	sl.value, r.arena = match.FromJSON(v, r.arena)
}

// group names the group of a type that the subject belongs to.
func (r *run) group(typeName, key string) {
	at, ok := r.set.groupTypes[typeName]
	if !ok || key == "" {
		return
	}
	g := &r.groups[at]
	g.id, g.given = key, true
	r.know(g, &r.set.groups[at].schema, "$group_key", key)
}

func (r *run) schema(at int32) *schema {
	if at >= 0 {
		return &r.set.groups[at].schema
	}
	return &r.set.people
}

// present tells whether there is a subject of this kind.
func (r *run) present(at int32) bool {
	return at == person || at >= 0 && r.groups[at].given
}

// identifier is what a flag hashes for a subject: False when there is none,
// waiting while a kept one has not been read.
func (r *run) identifier(f *flag, at int32) (string, match.Result) {
	switch {
	case at >= 0:
		return r.groups[at].id, match.Of(r.groups[at].given)
	case at == unknownGroup:
		return "", match.False
	case !f.continuous:
		return r.person.id, match.True
	}
	switch r.hashKeys {
	case unread:
		r.hashWant = r.hashWant || !r.ahead
		return "", waiting
	case unreadable:
		r.cause = CauseUnavailable
		return "", match.Unknown
	case read:
	}
	if key, ok := r.hashKey[f.key]; ok && key != "" {
		return key, match.True
	}
	if r.anonymous != "" {
		return r.anonymous, match.True
	}
	return r.person.id, match.True
}

// listed tells whether the person is on the list of a static cohort.
func (r *run) listed(id int64) match.Result {
	switch r.lists {
	case unread:
		r.listsWant = r.listsWant || !r.ahead
		return waiting
	case unreadable:
		r.cause = CauseUnavailable
		return match.Unknown
	case read:
	}
	return match.Of(slices.Contains(r.inLists, id))
}

// compute evaluates the chosen flags, or all active ones, once; false means
// that some of them wait for something.
func (r *run) compute() bool {
	r.pass++
	done := true
	for _, at := range r.asked() {
		if r.flag(at).stage == pending {
			done = false
		}
	}
	return done
}

func textView(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

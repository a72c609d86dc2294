package eval

import (
	"cmp"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/guidonhq/guidon/core/flags/eval/answers"
	"github.com/guidonhq/guidon/core/match"
)

// Evaluation decides the flags of a set for one request. It holds the known
// properties of the subjects, the outcomes so far and the stored data that is
// still missing. Evaluations are pooled: a slot, an outcome or a membership is
// valid only if it carries the current epoch.
//
// The caller describes the request (SetRequest or SetGroup, SetAnonymousID,
// SetPersonProperties, SetGroupProperties and Select) and calls Run. While Run
// returns false, the caller looks up the data that is needed (NeedsPerson,
// NeedsGroup, NeedsStaticCohorts, NeedsHashKeys, HasOpenPairs) and calls Run
// again. An Evaluation is not safe for concurrent use.
//
// It has more methods than other types, in a file per topic: the evaluator is
// one recursive walk through flags, conditions, filters and cohorts that shares
// the round, the arena and the cause, and a pooled object for each topic would
// cost memory per request. Its state is in types of their own: subject,
// storedData, answers.Answers, bucketCache, filling, tracer.
type Evaluation struct {
	set       *Set
	epoch     uint32 // changes with each use of the pooled value
	round     uint8  // counts the calls of Run
	env       match.Env
	trace     *tracer
	budget    match.Budget // the work on texts
	cause     Cause        // why the last unknown result is unknown
	selection []int32
	chosen    []int32 // memory of the selection by keys
	scope     Scope
	scoped    []int32 // memory of the selection by a scope
	outcomes  []outcome

	person       subject
	deviceID     string
	groups       []subject
	stored       storedData
	plugins      answers.Answers
	lookingAhead bool // collects pairs for plugins only; needs no stored data
	buckets      bucketCache
	arena        []byte // holds copies of property values
	filling      filling
}

var evaluations = sync.Pool{New: func() any {
	e := &Evaluation{}
	e.filling.visit = e.fillSlot
	return e
}}

// NewEvaluation returns an evaluation of set for one person. The caller calls
// Release after use; results that refer to memory of the evaluation are
// invalid then.
func NewEvaluation(set *Set, distinctID string, now time.Time) *Evaluation {
	e := evaluations.Get().(*Evaluation)
	e.set, e.round, e.trace = set, 0, nil
	e.epoch++
	if e.epoch == 0 {
		e.invalidateEpochs()
	}
	e.budget.Reset(set.budget)
	e.env = match.Env{Now: now, Budget: &e.budget}
	e.buckets.flag, e.arena, e.selection, e.deviceID = nil, e.arena[:0], nil, ""
	e.stored.reset(len(set.cohorts))
	e.plugins.Reset()
	e.env.External = &e.plugins
	e.outcomes = resize(e.outcomes, len(set.flags))
	e.person.reset(distinctID, set.people.Len())
	e.person.given = true
	e.groups = resize(e.groups, len(set.groups))
	for i := range e.groups {
		e.groups[i].reset("", set.groups[i].schema.Len())
	}
	e.setIdentity(&e.person, &set.people, "distinct_id", distinctID)
	return e
}

// resize returns s with n elements and keeps the elements it had.
func resize[T any](s []T, n int) []T {
	if n > cap(s) {
		s = append(s[:cap(s)], make([]T, n-cap(s))...)
	}
	return s[:n]
}

// invalidateEpochs clears everything that carries an epoch. It runs when the
// counter wraps around, once in 2^32 uses.
func (e *Evaluation) invalidateEpochs() {
	clear(e.person.slots[:cap(e.person.slots)])
	for i := range e.groups[:cap(e.groups)] {
		clear(e.groups[:cap(e.groups)][i].slots)
	}
	clear(e.stored.cohorts[:cap(e.stored.cohorts)])
	clear(e.outcomes[:cap(e.outcomes)])
	e.epoch = 1
}

// keptBytes is the largest buffer that a pooled evaluation keeps.
const keptBytes = 1 << 20

// Release returns the evaluation to the pool.
func (e *Evaluation) Release() {
	if cap(e.arena) > keptBytes {
		e.arena = nil
	}
	e.deviceID, e.scope = "", Scope{}
	e.set, e.trace, e.selection, e.buckets.flag, e.stored.hashKeys = nil, nil, nil, nil, nil
	e.filling.subject, e.filling.schema = nil, nil
	evaluations.Put(e)
}

// Trace makes the evaluation write explanations. Call it before Run.
func (e *Evaluation) Trace() { e.trace = newTracer(e.set.budget) }

// Work returns the units of work on texts so far.
func (e *Evaluation) Work() int64 { return e.budget.Spent() }

// Now returns the time that the flags are evaluated at.
func (e *Evaluation) Now() time.Time { return e.env.Now }

// Select restricts the evaluation to the flags with the given keys and ignores
// unknown keys. Inactive flags are included only with inactiveToo. Nil keys
// select all of them.
func (e *Evaluation) Select(keys []string, inactiveToo bool) {
	if keys == nil && !inactiveToo {
		return
	}
	if keys == nil {
		e.selection = e.set.table.Order
		return
	}
	if e.chosen == nil {
		e.chosen = make([]int32, 0, len(keys)) // a nil selection means all flags
	}
	e.selection = e.chosen[:0]
	for _, key := range keys {
		if at, ok := e.set.byKey[key]; ok && (inactiveToo || e.set.flags[at].active) {
			e.selection = append(e.selection, at)
		}
	}
	slices.SortFunc(e.selection, func(a, b int32) int { return cmp.Compare(e.set.flags[a].id, e.set.flags[b].id) })
	e.selection = slices.Compact(e.selection)
	e.chosen = e.selection
}

// selected returns the places of the flags to decide, ordered by flag id.
func (e *Evaluation) selected() []int32 {
	if e.selection != nil {
		return e.selection
	}
	return e.set.active
}

// Run evaluates the selected flags once. It returns false if some of them need
// stored data or results of plugins that are not there yet.
func (e *Evaluation) Run() bool {
	e.round++
	done := true
	for _, at := range e.selected() {
		if e.flagOutcome(at).stage == pending {
			done = false
		}
	}
	return done
}

// Len returns the number of selected flags.
func (e *Evaluation) Len() int { return len(e.selected()) }

// Failure returns why the i-th selected flag has no value, or CauseNone.
func (e *Evaluation) Failure(i int) Cause { return e.outcomes[e.selected()[i]].failure() }

// Decisions returns one decision per selected flag, ordered by flag id.
func (e *Evaluation) Decisions() []Decision {
	out := make([]Decision, len(e.selected()))
	for i, at := range e.selected() {
		_, out[i] = e.Decision(i)
		if p := e.set.flags[at].payload(&e.outcomes[at]); p != nil {
			out[i].Payload = *p
		}
	}
	return out
}

// Decision returns the decision for the i-th selected flag, without its payload,
// and the place of the flag in the set. It allocates nothing.
func (e *Evaluation) Decision(i int) (place int, d Decision) {
	at := e.selected()[i]
	f, o := e.set.flags[at], &e.outcomes[at]
	return int(at), Decision{
		ID: f.id, Key: f.key, Version: f.version, On: o.on, Variant: f.variantKey(o),
		Reason: o.reason, Condition: int(o.condition), Failed: o.failure(),
	}
}

// Explanations returns one explanation per selected flag. It requires Trace.
func (e *Evaluation) Explanations() []*Explanation {
	out := make([]*Explanation, 0, len(e.selected()))
	for _, at := range e.selected() {
		out = append(out, e.trace.byKey[e.set.flags[at].key])
	}
	return out
}

// textView returns b as a string without a copy. b must not change while the
// string is in use.
func textView(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

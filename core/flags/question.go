package flags

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/match"
)

// Question is for whom flags are asked, and what is given about them.
type Question struct {
	DistinctID       string
	AnonymousID      string                     // the id before login, for flags with experience continuity
	Groups           map[string]string          // group type name to group key
	PersonProperties json.RawMessage            // an object that goes before the stored properties
	GroupProperties  map[string]json.RawMessage // the same by group type name
	FlagKeys         []string                   // nil asks for all active flags
}

// Facts is what is stored about the subjects of a question, for those who
// have it at hand.
type Facts struct {
	PersonProperties json.RawMessage
	GroupProperties  map[string]json.RawMessage
	StaticCohorts    []int64           // the lists the person is on
	HashKeys         map[string]string // experience continuity: flag key to identifier
	Plugins          match.External    // answers for operators of plugins; nil: nobody does
}

// Decision is what one flag came to.
type Decision struct {
	ID        int64
	Key       string
	Version   int64
	On        bool
	Variant   string // empty for a flag without one
	Payload   string // a JSON text, or empty
	Reason    Reason
	Condition int // index of the condition set, or -1
	Failed    Cause
}

// Value is what clients get: true, false or a variant key.
func (d Decision) Value() any {
	if d.On && d.Variant != "" {
		return d.Variant
	}
	return d.On
}

// Evaluate decides flags from what it is given alone: it reads no store, asks
// no plugin, and takes the present as an argument. A property that is neither
// in q nor in known does not exist. Flags come in the order of their ids;
// one that cannot be computed has Failed set. Static cohorts and continuity
// come from known.
func (s *Set) Evaluate(q *Question, known *Facts, now time.Time) []Decision {
	r := newRun(s, q.DistinctID, now)
	defer r.release()
	r.ask(q)
	r.choose(q.FlagKeys, false)
	r.take(known)
	r.compute()
	return r.decisions()
}

// Explain is Evaluate with the whole way to each value. Without FlagKeys it
// explains the inactive flags too.
func (s *Set) Explain(q *Question, known *Facts, now time.Time) []*Explanation {
	r := newRun(s, q.DistinctID, now)
	defer r.release()
	r.trace = newTracer()
	r.ask(q)
	r.choose(q.FlagKeys, true)
	r.take(known)
	r.compute()
	return r.explanations()
}

// ask lays the question into the run.
func (r *run) ask(q *Question) {
	r.anonymous = q.AnonymousID
	for name, key := range q.Groups {
		r.group(name, key)
	}
	r.fillRaw(&r.person, &r.set.people, fromRequest, q.PersonProperties)
	for name, raw := range q.GroupProperties {
		if at, ok := r.set.groupTypes[name]; ok {
			r.fillRaw(&r.groups[at], &r.set.groups[at].schema, fromRequest, raw)
		}
	}
}

// choose restricts the run to some flags; unknown keys are nobody's fault.
func (r *run) choose(keys []string, inactiveToo bool) {
	if keys == nil && !inactiveToo {
		return
	}
	r.chosen = make([]int32, 0, len(keys))
	if keys == nil {
		for at := range r.set.flags {
			r.chosen = append(r.chosen, int32(at))
		}
		return
	}
	for _, key := range keys {
		if at, ok := r.set.byKey[key]; ok && (inactiveToo || r.set.flags[at].active) {
			r.chosen = append(r.chosen, at)
		}
	}
	slices.Sort(r.chosen)
	r.chosen = slices.Compact(r.chosen)
}

// take ends all reading: what is not known does not exist.
func (r *run) take(known *Facts) {
	if known == nil {
		known = &Facts{}
	}
	r.fillRaw(&r.person, &r.set.people, fromStore, known.PersonProperties)
	r.person.stored = read
	for i := range r.groups {
		g := &r.set.groups[i]
		r.fillRaw(&r.groups[i], &g.schema, fromStore, known.GroupProperties[g.name])
		r.groups[i].stored = read
	}
	r.lists, r.inLists = read, append(r.inLists[:0], known.StaticCohorts...)
	r.hashKeys, r.hashKey = read, known.HashKeys
	if known.Plugins != nil {
		r.env.External = known.Plugins
	}
}

// fillRaw is fill from JSON text, and reports whether it could be read. The
// text is parsed on its own, because what is in the slots points into it.
func (r *run) fillRaw(s *subject, in *schema, from source, raw []byte) bool {
	if len(raw) == 0 {
		return true
	}
	v, err := fastjson.ParseBytes(raw)
	if err != nil {
		return false
	}
	o, err := v.Object()
	if err != nil {
		return v.Type() == fastjson.TypeNull
	}
	r.fill(s, in, from, o)
	return true
}

// asked is the flags the run is about, in the order of their ids.
func (r *run) asked() []int32 {
	if r.chosen != nil {
		return r.chosen
	}
	return r.set.active
}

func (r *run) decisions() []Decision {
	out := make([]Decision, 0, len(r.asked()))
	for _, at := range r.asked() {
		f, o := &r.set.flags[at], &r.outcomes[at]
		d := Decision{
			ID: f.id, Key: f.key, Version: f.version, On: o.on, Variant: f.named(o),
			Reason: o.reason, Condition: int(o.condition), Failed: o.failure(),
		}
		if p := f.payload(o); p != nil {
			d.Payload = *p
		}
		out = append(out, d)
	}
	return out
}

func (r *run) explanations() []*Explanation {
	out := make([]*Explanation, 0, len(r.asked()))
	for _, at := range r.asked() {
		out = append(out, r.trace.all[r.set.flags[at].key])
	}
	return out
}

// failure is why an outcome is none.
func (o *outcome) failure() Cause {
	switch {
	case o.stage == settled:
		return CauseNone
	case o.cause == CauseNone:
		return CauseUnavailable
	}
	return o.cause
}

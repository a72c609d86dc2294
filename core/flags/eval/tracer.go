package eval

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/flags/eval/explanation"
	"github.com/guidonhq/guidon/core/match"
)

// Explanation lists the steps that led to the value of a flag.
type Explanation = explanation.Explanation

// tracer writes explanations while flags are evaluated. A nil tracer writes
// nothing. Explanations hold no reference to the evaluation.
type tracer struct {
	byKey   map[string]*Explanation // by flag key, of the last round
	current *Explanation
	set     *explanation.Set
	filters *[]explanation.Filter // where the next filter goes
	budget  match.Budget          // of what is evaluated for the trace only
}

func newTracer(budget int64) *tracer {
	t := &tracer{byKey: map[string]*Explanation{}}
	t.budget.Reset(budget)
	return t
}

// payFromTrace makes the tracer pay for what an evaluation without a trace does
// not evaluate, so that both have the same rest of the budget. The function that
// it returns ends that.
func (e *Evaluation) payFromTrace() (end func()) {
	before := e.env.Budget
	e.env.Budget = &e.trace.budget
	return func() { e.env.Budget = before }
}

// flag evaluates f and records its explanation.
func (t *tracer) flag(r *Evaluation, f *flag) outcome {
	outer := *t
	e := &Explanation{
		ID: f.id, Key: f.key, Version: f.version, Subject: r.subjectName(f.subject),
		Bucketing: "distinct_id", Runtime: f.runtime.String(), Contexts: slices.Clone(f.contexts), Served: f.active && r.scope.includes(f),
		Gates: []explanation.Gate{}, Conditions: []explanation.Set{}, DependsOn: []*Explanation{},
	}
	if f.byDevice {
		e.Bucketing = "device_id"
	}
	if e.Contexts == nil {
		e.Contexts = []string{}
	}
	t.byKey[f.key], t.current, t.set, t.filters = e, e, nil, nil
	t.gate(explanation.Gate{Name: "active", Result: explanation.GateResult(f.active)})
	if f.active && !r.scope.inContext(f) {
		t.gate(explanation.Gate{Name: "contexts", Result: "decided", Detail: "the request names other evaluation contexts"})
	}
	o := r.evaluateFlag(f)
	e.Identifier = r.explainIdentifier(f)
	t.finish(r, f, &o)
	t.current, t.set, t.filters = outer.current, outer.set, outer.filters
	return o
}

func (t *tracer) gate(g explanation.Gate) { t.current.Gates = append(t.current.Gates, g) }

// finish records the outcome of a flag.
func (t *tracer) finish(r *Evaluation, f *flag, o *outcome) {
	e := t.current
	if f.active && f.broken != nil {
		t.gate(explanation.Gate{Name: "definition", Result: "failed", Detail: f.broken.Error()})
	}
	if f.active && f.broken == nil && (o.stage != settled || ReasonDisabled < o.reason && o.reason < ReasonHoldout) {
		result := "decided"
		if o.stage != settled {
			result = "failed"
		}
		t.gate(explanation.Gate{Name: "conditions", Result: result})
	}
	for i := len(e.Conditions); i < len(f.conditions); i++ {
		e.Conditions = append(e.Conditions, r.explainSet(f, i, "not_reached"))
	}
	if o.stage != settled {
		e.Failure = o.cause.Code()
		return
	}
	e.Computed = true
	e.Value, e.Payload = f.value(o), f.payload(o)
	e.Reason = &explanation.Reason{Code: o.reason.Code(), Description: o.reason.Describe(int(o.condition))}
	if o.condition >= 0 {
		at := int(o.condition)
		e.Reason.Condition = &at
	}
	if o.on && o.variant != noVariant && e.Variant == nil {
		e.Variant = f.explainVariant(nil)
		e.Variant.Override = true
	}
	if e.Variant != nil {
		e.Variant.Pick(f.variantKey(o))
	}
}

// subjectName returns the name of a kind of subject.
func (e *Evaluation) subjectName(at int32) string {
	switch {
	case at >= 0:
		return e.set.groups[at].name
	case at == unknownGroup:
		return "unknown group type"
	}
	return "person"
}

func (e *Evaluation) explainIdentifier(f *flag) explanation.Identifier {
	id, res := e.identifier(f, f.subject)
	from := "distinct_id"
	switch {
	case res != match.True:
		from = "none"
	case f.subject >= 0:
		from = "group_key"
	case f.byDevice:
		from = "device_id"
	case f.continuous && e.stored.hashKeys[f.key] != "":
		from = "hash_key_override"
	case f.continuous && e.stored.anonymousID != "":
		from = "anon_distinct_id"
	}
	return explanation.Identifier{Value: strings.Clone(id), Source: from}
}

func (e *Evaluation) explainSet(f *flag, i int, result string) explanation.Set {
	c := &f.conditions[i]
	s := explanation.Set{Index: i, Subject: e.subjectName(c.subject), Result: result, Rollout: c.rollout.percent, Filters: []explanation.Filter{}}
	if c.variantOverride != noVariant {
		s.Variant = f.variants[c.variantOverride].key
	}
	return s
}

func (t *tracer) condition(r *Evaluation, f *flag, i int) {
	t.current.Conditions = append(t.current.Conditions, r.explainSet(f, i, ""))
	t.set = &t.current.Conditions[i]
	t.filters = &t.set.Filters
}

func (t *tracer) endCondition(reason Reason, res match.Result) {
	t.set.Result = resultName(res)
	if res != match.Unknown {
		t.set.Reason = reason.Code()
	}
	t.filters = nil
}

func resultName(res match.Result) string {
	if res == waiting {
		return "waiting"
	}
	return res.String()
}

// filter evaluates f and records the value it tested.
func (t *tracer) filter(r *Evaluation, f *filter, at int32) match.Result {
	outer := t.filters
	var within []explanation.Filter
	t.filters = &within
	res := r.evaluateFilter(f, at)
	t.filters = outer
	if outer == nil {
		return res
	}
	p := f.source
	x := explanation.Filter{
		Key: p.Key, Type: p.Type, Operator: p.Operator, Expected: p.Value, Negated: p.Negation, Result: resultName(res), Within: within,
	}
	switch f.kind {
	case byProperty:
		x.Operator, x.Plugin = f.test.Operator(), f.test.Source()
		x.Seen, x.Source = r.explainValue(f, at)
	case byCohort:
		x.Source = "cohort"
	case byFlag:
		x.Source, x.Key = "flag", r.set.flags[f.target].key
		x.Seen, _ = json.Marshal(t.byKey[x.Key].Value)
	case byNothing:
		x.Source = "unreadable"
	}
	if res == match.Unknown {
		x.Why = r.cause.Code()
	}
	*outer = append(*outer, x)
	return res
}

// explainValue returns the value that a property filter tests, and its source.
func (e *Evaluation) explainValue(f *filter, at int32) (json.RawMessage, string) {
	s := e.subject(at)
	if f.reads != nil {
		v, found := e.readProperties(f, s)
		if found != match.True {
			return nil, "unreadable"
		}
		return v.AppendTo(nil), "several"
	}
	v, found := e.value(s, f.slot, f.fallbackSlot)
	switch found {
	case match.False:
		return nil, "missing"
	case match.True:
		from := s.slots[f.slot].from
		if s.slots[f.slot].epoch != e.epoch {
			from = s.slots[f.fallbackSlot].from
		}
		return v.AppendTo(nil), [...]string{fromRequest: "override", fromStore: "stored", fromIdentity: "identity", fromAddress: "location"}[from]
	default:
		return nil, "unreadable"
	}
}

// dependsOn adds the explanation of a flag that the current one depends on.
func (t *tracer) dependsOn(f *flag) {
	if t == nil {
		return
	}
	e := t.byKey[f.key]
	for _, known := range t.current.DependsOn {
		if known == e {
			return
		}
	}
	t.current.DependsOn = append(t.current.DependsOn, e)
}

func (t *tracer) rollout(id string, hash float64, s rollout) {
	if t.set == nil {
		return
	}
	t.set.Identifier, t.set.Hash, t.set.Threshold = strings.Clone(id), explanation.Number(hash), explanation.Number(s.limit)
}

func (t *tracer) variant(f *flag, hash float64) {
	if t != nil {
		t.current.Variant = f.explainVariant(explanation.Number(hash))
	}
}

func (f *flag) explainVariant(hash *float64) *explanation.Variant {
	out := &explanation.Variant{Hash: hash, Intervals: []explanation.Interval{}}
	for _, v := range f.variants {
		out.Intervals = append(out.Intervals, explanation.Interval{Key: v.key, From: v.from, To: v.to})
	}
	return out
}

func (t *tracer) enrolment(e *enrolment, value *match.Value, res match.Result) {
	if t == nil {
		return
	}
	g := explanation.Gate{Name: "enrolment", Result: "decided", Property: e.property, Detail: "the person has opted " + map[bool]string{true: "in", false: "out"}[res == match.True]}
	switch {
	case res == match.Unknown || res == waiting:
		g.Result, g.Detail = "failed", "the property cannot be read"
	case e.slot < 0:
		g.Detail = "everyone within the rollout is enrolled"
	case value == nil:
		g.Result, g.Detail = "passed", "the person has neither opted in nor out"
	default:
		g.Seen = value.AppendTo(nil)
	}
	t.gate(g)
}

func (t *tracer) holdout(h *holdout, id string, hash float64, held bool) {
	if t == nil {
		return
	}
	g := explanation.Gate{Name: "holdout", Result: explanation.GateResult(!held), Identifier: strings.Clone(id), Threshold: explanation.Number(h.rollout.limit)}
	if !h.rollout.everyone {
		g.Hash = explanation.Number(hash)
	}
	t.gate(g)
}

package eval_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/bucket"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/match"
)

// model decides flags in the plainest way: it decodes the stored text again for each question,
// prepares nothing and keeps nothing. It shares no code with the evaluator but the operators
// (package match has a model of its own) and the hash, which has vectors of its own.
type model struct {
	flags   map[int64]eval.Definition
	cohorts map[int64]eval.CohortDefinition
	types   map[string]int
	request *eval.Request
	known   *eval.KnownProperties
}

// modelDecision is what the model says of a flag.
type modelDecision struct {
	on        bool
	variant   string
	payload   string
	reason    string
	condition int
	causes    []string // why it has no value; one of them is reported
}

// verdict is true, false, or unknown for one of the causes.
type verdict struct {
	yes    bool
	causes []string
}

func unknown(cause eval.Cause) verdict { return verdict{causes: []string{cause.Code()}} }

func (v verdict) not() verdict {
	v.yes = !v.yes && v.causes == nil
	return v
}

// all is true if every verdict is, and false if one is, whatever the unknown ones are.
func all(verdicts []verdict) verdict {
	var causes []string
	for _, v := range verdicts {
		if v.causes == nil && !v.yes {
			return v
		}
		causes = append(causes, v.causes...)
	}
	return verdict{yes: causes == nil, causes: causes}
}

// The stored forms.
type (
	modelFilters struct {
		Groups     *[]modelSet
		Properties []modelProperty // of the oldest form, which is one set
		Rollout    *float64        `json:"rollout_percentage"`

		Index         *int `json:"aggregation_group_type_index"`
		Multivariate  struct{ Variants []modelVariant }
		Payloads      map[string]json.RawMessage
		EarlyExit     bool       `json:"early_exit"`
		Enrollment    bool       `json:"feature_enrollment"`
		SuperGroups   []modelSet `json:"super_groups"`
		HoldoutGroups []modelSet `json:"holdout_groups"`
		Holdout       *struct {
			ID    any
			Share *float64 `json:"exclusion_percentage"`
		}
	}
	modelSet struct {
		Properties []modelProperty
		Rollout    *float64 `json:"rollout_percentage"`
		Variant    string
		Index      json.RawMessage `json:"aggregation_group_type_index"`
	}
	modelVariant struct {
		Key     string
		Rollout float64 `json:"rollout_percentage"`
	}
	modelProperty struct {
		Key, Type, Operator string
		Value               json.RawMessage
		Negation            bool
	}
	modelTree struct {
		Type   string
		Values *[]json.RawMessage
	}
)

// decide decides a flag for a request.
func (m *model) decide(d eval.Definition) modelDecision {
	scope := m.request.Scope
	shared := len(d.Contexts) == 0 || len(scope.Contexts) == 0
	for _, name := range d.Contexts {
		shared = shared || slices.Contains(scope.Contexts, name)
	}
	if !d.Active || !shared {
		return modelDecision{reason: "flag_disabled", condition: -1}
	}
	var f modelFilters
	if json.Unmarshal(d.Filters, &f) != nil {
		return modelDecision{causes: []string{eval.CauseDefinition.Code()}}
	}

	decision, decided := m.enrolment(d, f)
	if !decided {
		decision, decided = m.holdout(d, f)
	}
	if !decided {
		decision = m.conditions(d, f)
	}
	if decision.on && decision.causes == nil {
		decision.payload = modelPayload(f.Payloads[cmp.Or(decision.variant, "true")])
	}
	return decision
}

func modelPayload(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return text
}

func (m *model) enrolment(d eval.Definition, f modelFilters) (modelDecision, bool) {
	enrolled := func(yes bool) (modelDecision, bool) {
		return modelDecision{on: yes, reason: "super_condition_value"}, true
	}
	if f.Enrollment {
		v, given := m.property(nil, "$feature_enrollment/"+d.Key)
		if !given {
			return modelDecision{}, false
		}
		return enrolled(strings.EqualFold(strings.Trim(string(v), `"`), "true"))
	}
	if len(f.SuperGroups) == 0 {
		return modelDecision{}, false
	}

	set := f.SuperGroups[0]
	if len(set.Properties) == 0 {
		if m.outside(d, set.Rollout, nil) {
			return modelDecision{reason: "out_of_rollout_bound"}, true
		}
		return enrolled(true)
	}
	if _, given := m.property(nil, set.Properties[0].Key); !given {
		return modelDecision{}, false
	}
	matches := m.matches(d, set.Properties, nil)
	if matches.causes != nil {
		return modelDecision{causes: matches.causes}, true
	}
	return enrolled(matches.yes && !m.outside(d, set.Rollout, nil))
}

func (m *model) holdout(d eval.Definition, f modelFilters) (modelDecision, bool) {
	var name string
	var share float64
	switch {
	case f.Holdout != nil && f.Holdout.ID != nil && f.Holdout.Share != nil:
		name, share = "holdout-"+fmt.Sprint(f.Holdout.ID), *f.Holdout.Share
	case f.Holdout == nil && len(f.HoldoutGroups) > 0 && f.HoldoutGroups[0].Rollout != nil:
		name, share = f.HoldoutGroups[0].Variant, *f.HoldoutGroups[0].Rollout
	default:
		return modelDecision{}, false
	}
	id, given := m.identifier(d, f.Index)
	if !given || share < 100 && bucket.OfHoldout(id) > share/100 {
		return modelDecision{}, false
	}
	return modelDecision{on: true, variant: name, reason: "holdout_condition_value", condition: -1}, true
}

// conditions tries the sets in order. An unknown set does not matter if the flag has the same
// value with and without it.
func (m *model) conditions(d eval.Definition, f modelFilters) modelDecision {
	sets := []modelSet{{Properties: f.Properties, Rollout: f.Rollout}}
	if f.Groups != nil {
		sets = *f.Groups
	}
	precedence := []string{"no_group_type", "no_condition_match", "out_of_rollout_bound"}
	best := modelDecision{reason: precedence[0], condition: -1}
	var possible []modelDecision // with unknown sets
	var causes []string
	for i, set := range sets {
		index := f.Index
		if set.Index != nil {
			index = nil
			_ = json.Unmarshal(set.Index, &index)
		}
		matches := m.matches(d, set.Properties, index)
		value := modelDecision{on: true, reason: "condition_match", condition: i, variant: m.variant(d, f, set, index)}
		outside := m.outside(d, set.Rollout, index)
		var reason string
		switch {
		case !m.belongs(index):
			reason = "no_group_type"
		case m.lacksDevice(d, f, index):
			reason = "out_of_rollout_bound"
		case matches.causes != nil:
			causes = append(causes, matches.causes...)
			if !outside {
				possible = append(possible, value)
			} else if f.EarlyExit {
				possible = append(possible, modelDecision{})
			}
			continue
		case !matches.yes:
			reason = "no_condition_match"
		case outside:
			reason = "out_of_rollout_bound"
		default:
			return settle(value, possible, causes)
		}

		if slices.Index(precedence, reason) >= slices.Index(precedence, best.reason) {
			best.reason, best.condition = reason, i
		}
		if f.EarlyExit && reason == "out_of_rollout_bound" && !m.lacksDevice(d, f, index) {
			break
		}
	}
	return settle(best, possible, causes)
}

func settle(d modelDecision, possible []modelDecision, causes []string) modelDecision {
	for _, p := range possible {
		if p.on != d.on || p.variant != d.variant {
			return modelDecision{causes: causes}
		}
	}
	return d
}

// groupType returns the name of the group type with an index.
func (m *model) groupType(index int) string {
	for name, i := range m.types {
		if i == index {
			return name
		}
	}
	return ""
}

// belongs reports whether the request has a subject of the kind: a person, or a group.
func (m *model) belongs(index *int) bool {
	return index == nil || m.request.Groups[m.groupType(*index)] != ""
}

func (m *model) lacksDevice(d eval.Definition, f modelFilters, index *int) bool {
	return d.ByDevice && f.Index == nil && index == nil && m.request.DeviceID == ""
}

// identifier returns the text that is hashed.
func (m *model) identifier(d eval.Definition, index *int) (string, bool) {
	if index != nil {
		key := m.request.Groups[m.groupType(*index)]
		return key, key != ""
	}
	var f modelFilters
	_ = json.Unmarshal(d.Filters, &f)
	switch {
	case d.ByDevice && f.Index == nil:
		return m.request.DeviceID, m.request.DeviceID != ""
	case d.ExperienceContinuity && !d.ByDevice && m.known.HashKeys[d.Key] != "":
		return m.known.HashKeys[d.Key], true
	case d.ExperienceContinuity && !d.ByDevice && m.request.AnonymousID != "":
		return m.request.AnonymousID, true
	}
	return m.request.DistinctID, true
}

// outside reports whether the rollout excludes the subject.
func (m *model) outside(d eval.Definition, percent *float64, index *int) bool {
	switch {
	case percent == nil || *percent >= 100:
		return false
	case *percent <= 0:
		return true
	}
	id, _ := m.identifier(d, index)
	return bucket.Of(d.Key, id, "") > *percent/100
}

func (m *model) variant(d eval.Definition, f modelFilters, set modelSet, index *int) string {
	for _, v := range f.Multivariate.Variants {
		if set.Variant == v.Key {
			return v.Key
		}
	}
	id, _ := m.identifier(d, index)
	hash, from := bucket.Of(d.Key, id, "variant"), 0.0
	for _, v := range f.Multivariate.Variants {
		to := from + v.Rollout/100
		if hash >= from && hash < to {
			return v.Key
		}
		from = to
	}
	return ""
}

func (m *model) matches(d eval.Definition, properties []modelProperty, index *int) verdict {
	var verdicts []verdict
	for _, p := range properties {
		verdicts = append(verdicts, m.filter(node{flag: d.ID}, p, index))
	}
	return all(verdicts)
}

// filter tests one filter of a flag or cohort for a subject.
func (m *model) filter(of node, p modelProperty, index *int) verdict {
	switch p.Type {
	case "cohort":
		return m.cohortFilter(of, p)
	case "flag":
		return m.flagFilter(of, p)
	case "", "person", "group":
	default:
		return unknown(eval.CauseDefinition)
	}

	f, err := match.Compile(match.Spec{Key: p.Key, Operator: p.Operator, Value: p.Value}, match.Options{})
	if err != nil {
		return unknown(eval.CauseOperator)
	}
	var v match.Value
	raw, given := m.property(index, p.Key)
	if initial, ok := strings.CutPrefix(p.Key, "$initial_"); !given && ok && index == nil {
		name := "$" + initial
		if strings.HasPrefix(initial, "utm_") {
			name = initial
		}
		raw, given = m.property(nil, name)
	}
	if given {
		v, _ = match.Parse(raw)
	}
	return verdict{yes: f.Match(&v, &match.Env{Now: flagstest.Now}) == match.True}
}

// property returns the property of the person, or of the group of a type: from the request, else what
// identifies the subject, else the location, else what is stored.
func (m *model) property(index *int, name string) (json.RawMessage, bool) {
	request, known, identity, id := m.request.PersonProperties, m.known.PersonProperties, "distinct_id", m.request.DistinctID
	if index != nil {
		group := m.groupType(*index)
		request, known, identity, id = m.request.GroupProperties[group], m.known.GroupProperties[group], "$group_key", m.request.Groups[group]
	}
	v, given := member(request, name)
	if index == nil && (!given || string(v) == "null") {
		if place, ok := member(m.request.Location, name); ok {
			return place, true
		}
	}
	switch {
	case given:
		return v, true
	case name == identity:
		return json.RawMessage(strconv.Quote(id)), true
	}
	return member(known, name)
}

func member(object json.RawMessage, name string) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members)
	v, ok := members[name]
	return v, ok
}

func (m *model) flagFilter(of node, p modelProperty) verdict {
	to, known := m.flagByName(p.Key)
	if !known {
		return unknown(eval.CauseDependency)
	}
	if m.reaches(node{flag: to}, of, map[node]bool{}) {
		return unknown(eval.CauseCycle)
	}
	got := m.decide(m.flags[to])
	if got.causes != nil {
		return unknown(eval.CauseDependency)
	}
	switch want := string(p.Value); want {
	case "true", "false":
		return verdict{yes: got.on == (want == "true")}
	default:
		var variant string
		err := json.Unmarshal(p.Value, &variant)
		return verdict{yes: err == nil && variant != "" && got.on && got.variant == variant}
	}
}

func (m *model) flagByName(name string) (int64, bool) {
	if id, err := strconv.ParseInt(name, 10, 64); err == nil && m.exists(id) {
		return id, true
	}
	for id, d := range m.flags {
		if d.Key == name && !d.Deleted {
			return id, true
		}
	}
	return 0, false
}

func (m *model) exists(id int64) bool {
	d, ok := m.flags[id]
	return ok && !d.Deleted
}

func (m *model) cohortFilter(of node, p modelProperty) verdict {
	if !slices.Contains([]string{"", "exact", "in", "not_in"}, p.Operator) {
		return unknown(eval.CauseOperator)
	}
	id, _ := strconv.ParseInt(strings.Trim(string(p.Value), `"`), 10, 64)
	c, known := m.cohorts[id]
	switch {
	case !known || c.Deleted:
		return unknown(eval.CauseCohort)
	case m.reaches(node{cohort: id}, of, map[node]bool{}):
		return unknown(eval.CauseCycle)
	}
	in := verdict{yes: slices.Contains(m.known.StaticCohorts, id)}
	if !c.Static {
		in = m.tree(node{cohort: id}, c.Filters)
	}
	if p.Operator == "not_in" {
		return in.not()
	}
	return in
}

func (m *model) tree(of node, raw json.RawMessage) verdict {
	var tree modelTree
	_ = json.Unmarshal(raw, &tree)
	if tree.Values == nil {
		return verdict{yes: true}
	}
	alternatives := tree.Type == "OR"
	var verdicts []verdict
	for _, value := range *tree.Values {
		var v verdict
		var inner modelTree
		if _ = json.Unmarshal(value, &inner); inner.Values != nil {
			v = m.tree(of, value)
		} else {
			var p modelProperty
			_ = json.Unmarshal(value, &p)
			if v = m.filter(of, p, nil); p.Negation {
				v = v.not()
			}
		}
		if alternatives {
			v = v.not()
		}
		verdicts = append(verdicts, v)
	}
	if alternatives {
		return all(verdicts).not()
	}
	return all(verdicts)
}

// node is a flag or a cohort, by its id.
type node struct{ flag, cohort int64 }

// reaches reports whether filters lead from one node to another.
func (m *model) reaches(from, to node, seen map[node]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, p := range m.filtersOf(from) {
		next := node{}
		switch p.Type {
		case "flag":
			next.flag, _ = m.flagByName(p.Key)
		case "cohort":
			next.cohort, _ = strconv.ParseInt(strings.Trim(string(p.Value), `"`), 10, 64)
		}
		if next != (node{}) && m.reaches(next, to, seen) {
			return true
		}
	}
	return false
}

// filtersOf returns all filters of a flag or cohort.
func (m *model) filtersOf(n node) []modelProperty {
	var out []modelProperty
	if n.cohort != 0 {
		if c := m.cohorts[n.cohort]; !c.Static {
			var walk func(raw json.RawMessage)
			walk = func(raw json.RawMessage) {
				var tree modelTree
				if _ = json.Unmarshal(raw, &tree); tree.Values == nil {
					var p modelProperty
					_ = json.Unmarshal(raw, &p)
					out = append(out, p)
					return
				}
				for _, value := range *tree.Values {
					walk(value)
				}
			}
			walk(c.Filters)
		}
		return out
	}

	var f modelFilters
	if json.Unmarshal(m.flags[n.flag].Filters, &f) != nil {
		return nil
	}
	out = append(out, f.Properties...)
	if f.Groups != nil {
		out = nil
		for _, set := range *f.Groups {
			out = append(out, set.Properties...)
		}
	}
	if len(f.SuperGroups) > 0 && !f.Enrollment {
		out = append(out, f.SuperGroups[0].Properties...)
	}
	return out
}

// served returns the ids of the flags in the answer, in order.
func (m *model) served() []int64 {
	var out []int64
	scope := m.request.Scope
	for _, id := range slices.Sorted(maps.Keys(m.flags)) {
		d := m.flags[id]
		chosen := m.request.FlagKeys == nil || slices.Contains(m.request.FlagKeys, d.Key)
		runtime := scope.Runtime == eval.AnyRuntime || d.Runtime == eval.AnyRuntime || d.Runtime == scope.Runtime
		context := len(scope.Contexts) == 0 || len(d.Contexts) == 0 ||
			slices.ContainsFunc(scope.Contexts, func(name string) bool { return slices.Contains(d.Contexts, name) })
		if d.Active && !d.Deleted && chosen && runtime && context && strings.HasPrefix(d.Key, scope.Prefix) {
			out = append(out, id)
		}
	}
	return out
}

// TestDecisionsEqualTheModel holds the evaluator against the model: projects with cycles, cohorts, groups,
// scopes and everything that a flag can be, and requests of which the server knows a part.
func TestDecisionsEqualTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		p := newProject(seed)
		for step := range rounds(6) {
			for range 10 {
				p.change()
			}
			p.plugins.on = false // the model knows no plugins
			flags, cohorts := p.lists()
			set := eval.Compile(flags, cohorts, p.types, eval.CompileOptions{})
			for i := range p.people {
				m := &model{flags: p.flags, cohorts: p.cohorts, types: p.types}
				m.request, m.known = p.question(i)
				m.compare(t, fmt.Sprintf("seed %d, step %d, person %d", seed, step, i), set)
			}
		}
	}
}

func (m *model) compare(t *testing.T, name string, set *eval.Set) {
	t.Helper()
	decisions := set.Evaluate(m.request, m.known, flagstest.Now)
	var served []int64
	for _, d := range decisions {
		served = append(served, d.ID)
		want := m.decide(m.flags[d.ID])
		switch {
		case want.causes != nil && slices.Contains(want.causes, d.Failed.Code()):
		case want.causes == nil && d.Failed == eval.CauseNone && d.On == want.on && d.Variant == want.variant &&
			d.Reason.Code() == want.reason && d.Condition == want.condition && d.Payload == want.payload:
		default:
			t.Fatalf("%s: flag %d\n%s\ngot  %+v %s %s\nwant %+v", name, d.ID, m.flags[d.ID].Filters, d, d.Reason.Code(), d.Failed.Code(), want)
		}
	}
	if want := m.served(); !slices.Equal(served, want) {
		t.Fatalf("%s: flags %v, want %v for %+v", name, served, want, m.request.Scope)
	}
}

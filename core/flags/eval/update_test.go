package eval_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/match"
)

// switchedOperators is a registry whose operators come and go.
type switchedOperators struct{ on bool }

func (r *switchedOperators) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{Source: "plugin", Missing: match.False, Compile: func(value []byte) (match.Compiled, error) {
		if string(value) == "1" {
			return match.Compiled{}, errors.New("refused")
		}
		return match.Compiled{Program: match.Program(value), Reads: []string{"lat", "$geoip_city_name"}}, nil
	}}, r.on && id == "geo/within"
}

func (r *switchedOperators) Match(p match.Program, _ *match.Value) match.Result {
	return match.Of(len(p)%2 == 0)
}

// project is definitions that change at random.
type project struct {
	*rand.Rand
	corpora []*flagstest.Corpus
	people  []flagstest.Person
	flags   map[int64]eval.Definition
	cohorts map[int64]eval.CohortDefinition
	types   map[string]int
	plugins *switchedOperators
	nextID  int64

	contexts, runtimes bool // what bounds the flags of the project
}

func newProject(seed uint64) *project {
	p := &project{
		Rand: rand.New(rand.NewPCG(seed, 2)), flags: map[int64]eval.Definition{}, cohorts: map[int64]eval.CohortDefinition{},
		types: map[string]int{"company": 0, "project": 1}, plugins: &switchedOperators{},
		contexts: seed%4 == 1 || seed%4 == 3, runtimes: seed%4 >= 2,
	}
	for i := range 4 {
		p.corpora = append(p.corpora, flagstest.GenerateShapes(seed*10+uint64(i), 30, 2))
		p.people = append(p.people, p.corpora[i].People...)
		for _, person := range p.corpora[i].People {
			for _, properties := range person.GroupProperties {
				for name := range p.IntN(9) {
					properties[fmt.Sprint("g", name)] = true
				}
			}
		}
	}
	for range 25 {
		p.changeFlag(p.newID())
	}
	for id := int64(100); id < 105; id++ {
		p.changeCohort(id)
	}
	return p
}

func (p *project) newID() int64 {
	p.nextID++
	return p.nextID
}

// filters returns filters of a random flag, in some cases with a dependency on
// another flag, an unknown one too, or with an operator of a plugin.
func (p *project) filters() json.RawMessage {
	stored := p.corpora[p.IntN(len(p.corpora))].Stored().Flags
	raw := stored[p.IntN(len(stored))].Filters
	switch p.IntN(15) {
	case 0, 1, 2:
		return fmt.Appendf(nil, `{"groups":[{"properties":[%s]},{"rollout_percentage":30}],"early_exit":%t}`, p.dependency(), p.IntN(3) == 0)
	case 3: // a set that may be unknown before others that decide
		return fmt.Appendf(nil, `{"groups":[{"properties":[%s],"rollout_percentage":%d},{"properties":[{"key":"k0","operator":"is_set"},%s],"variant":"blue"},{"rollout_percentage":%d,"variant":"blue"}],%s,"payloads":{"blue":"1","control":"{}"}}`,
			p.dependency(), 30+70*p.IntN(2), p.dependency(), 40+60*p.IntN(2), flagstest.Variants)
	case 4:
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"k1","operator":"geo/within","value":%d}],"rollout_percentage":60}]}`, p.IntN(3))
	case 5:
		return json.RawMessage(`{"groups":`)
	case 6:
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"id","type":"cohort","value":%d,"operator":%q}]}]}`, 99+p.IntN(8), []string{"in", "not_in", "gt"}[p.IntN(3)])
	case 7:
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"k1","operator":"regex","value":"x{%d}"}]}]}`, 50+p.IntN(350))
	case 8:
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"$initial_k%d","operator":"is_set"},{"key":"$geoip_%d","operator":"is_set"}]}]}`, p.IntN(5), p.IntN(3))
	case 9:
		return fmt.Appendf(nil, `{"groups":[{"rollout_percentage":%d},{"rollout_percentage":100}],"feature_enrollment":%t,"early_exit":%t}`, 100*p.IntN(2), p.IntN(4) == 0, p.IntN(2) == 0)
	case 10: // properties that only groups have
		return fmt.Appendf(nil, `{"aggregation_group_type_index":%d,"groups":[{"properties":[{"key":"g%d","type":"group","operator":"is_not_set"},{"key":"$group_key","type":"group","operator":"is_set"}],"rollout_percentage":70}]}`, p.IntN(3), p.IntN(9))
	case 11:
		return fmt.Appendf(nil, `{"groups":[{}],"super_groups":[{"properties":[{"key":"k0","operator":"is_set"},%s],"rollout_percentage":%d}]}`, p.dependency(), 50+50*p.IntN(2))
	}
	return raw
}

// dependency returns a filter on another flag, by its id or key.
func (p *project) dependency() string {
	name := fmt.Sprint(p.Int64N(p.nextID + 3))
	if p.IntN(3) == 0 {
		name = "key-" + name
	}
	return fmt.Sprintf(`{"type":"flag","key":%q,"operator":"flag_evaluates_to","value":%s}`, name, []string{"true", "false", `"blue"`, "7"}[min(p.IntN(8), 3)])
}

func (p *project) changeFlag(id int64) {
	d := p.flags[id]
	if d.ID == 0 {
		d = eval.Definition{ID: id, ProjectID: 1, Key: fmt.Sprintf("key-%d", id), Active: true}
	}
	d.Version++
	switch p.IntN(9) {
	case 0:
		d.Active = !d.Active
	case 1:
		d.Deleted = !d.Deleted
	case 2:
		if p.runtimes {
			d.Runtime = eval.Runtime(p.IntN(3))
		}
	case 8:
		if p.contexts {
			d.Contexts = [][]string{nil, {"main"}, {"docs", "main"}}[p.IntN(3)]
		}
	case 3:
		d.ByDevice, d.ExperienceContinuity = p.IntN(2) == 0, p.IntN(2) == 0
	case 4:
		d.Name = fmt.Sprint("name", p.IntN(100))
	}
	if d.Filters == nil || p.IntN(2) == 0 {
		d.Filters = p.filters()
	}
	p.flags[id] = d
}

func (p *project) changeCohort(id int64) {
	stored := p.corpora[p.IntN(len(p.corpora))].Stored().Cohorts
	d := eval.CohortDefinition{ID: id, Name: fmt.Sprint("cohort", p.IntN(9)), Filters: stored[p.IntN(len(stored))].Filters}
	switch p.IntN(8) {
	case 0:
		d.Static = true
	case 1, 3:
		d.Filters = fmt.Appendf(nil, `{"type":%q,"values":[{"key":"k0","operator":"is_not_set"},{"key":"id","type":"cohort","value":%d,"negation":%t},{"type":"OR","values":[{"key":"id","type":"cohort","value":%d},{"key":"k3","operator":"semver_gt","value":"1.9"}]}]}`,
			[]string{"AND", "OR"}[p.IntN(2)], 100+p.IntN(6), p.IntN(2) == 0, 100+p.IntN(6))
	case 4:
		d.Filters = json.RawMessage(`{"type":"OR","values":[]}`)
	case 5:
		d.Filters = fmt.Appendf(nil, `{"type":"AND","values":[%s]}`, p.dependency())
	case 2:
		d.Filters = json.RawMessage(`{"type":"AND","values":[{"key":"$geoip_country_code","value":"NZ"}]}`)
	}
	p.cohorts[id] = d
}

// randomFlag returns the id of a flag that exists or existed.
func (p *project) randomFlag() int64 { return 1 + p.Int64N(p.nextID) }

// change makes one random change.
func (p *project) change() {
	switch p.IntN(20) {
	case 0, 1:
		p.changeFlag(p.newID())
	case 2:
		delete(p.flags, p.randomFlag())
	case 3: // two flags exchange their keys
		a, b := p.randomFlag(), p.randomFlag()
		x, y := p.flags[a], p.flags[b]
		if x.ID != 0 && y.ID != 0 {
			x.Key, y.Key = y.Key, x.Key
			p.flags[a], p.flags[b] = x, y
		}
	case 4:
		p.changeCohort(100 + p.Int64N(7))
	case 5:
		delete(p.cohorts, 100+p.Int64N(7))
	case 6:
		if p.IntN(3) == 0 {
			p.types = []map[string]int{nil, {"company": 0}, {"company": 0, "project": 1}, {"project": 0, "company": 1}}[p.IntN(4)]
		}
	case 7:
		p.plugins.on = !p.plugins.on
	default:
		p.changeFlag(p.randomFlag())
	}
}

func (p *project) lists() ([]eval.Definition, []eval.CohortDefinition) {
	flags, cohorts := slices.Collect(maps.Values(p.flags)), slices.Collect(maps.Values(p.cohorts))
	slices.SortFunc(flags, func(a, b eval.Definition) int { return int(a.ID - b.ID) })
	slices.SortFunc(cohorts, func(a, b eval.CohortDefinition) int { return int(a.ID - b.ID) })
	return flags, cohorts
}

// question returns a request of a person, of whom the server knows a part.
func (p *project) question(i int) (*eval.Request, *eval.KnownProperties) {
	q := p.people[i].Question()
	q.AnonymousID = []string{"", "anonymous"}[p.IntN(2)]
	q.Scope = eval.Scope{Prefix: []string{"", "", "key-1"}[p.IntN(3)]}
	q.Scope.Runtime = eval.Runtime(p.IntN(4))
	q.Scope.Contexts = [][]string{nil, {"docs"}, {"main"}, {"other"}}[p.IntN(4)]
	if p.IntN(3) == 0 {
		q.FlagKeys = []string{"key-9", "key-2", "key-9", "key-30", "key-14", "no such"}
	}
	q.Location = []json.RawMessage{nil, json.RawMessage(`{"$geoip_1":"NZ","k0":"pro"}`)}[p.IntN(2)]
	known := &eval.KnownProperties{GroupProperties: map[string]json.RawMessage{}, HashKeys: map[string]string{}}
	for id := range p.nextID {
		if p.IntN(4) == 0 {
			known.HashKeys[fmt.Sprintf("key-%d", id)] = []string{"kept", ""}[p.IntN(2)]
		}
	}
	for id := int64(100); id < 107; id++ {
		if p.IntN(2) == 0 {
			known.StaticCohorts = append(known.StaticCohorts, id)
		}
	}
	q.PersonProperties, known.PersonProperties = p.split(q.PersonProperties)
	for name, properties := range q.GroupProperties {
		q.GroupProperties[name], known.GroupProperties[name] = p.split(properties)
	}
	return q, known
}

// split returns the properties that the request gives, and those that are stored. Some are in both, with other values.
func (p *project) split(object json.RawMessage) (given, stored json.RawMessage) {
	var members map[string]any
	if err := json.Unmarshal(object, &members); err != nil {
		panic(err)
	}
	sides := [2]map[string]any{{}, {}}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		side := p.IntN(2)
		sides[side][name] = members[name]
		if p.IntN(4) == 0 {
			sides[1-side][name] = nil
		}
	}
	given, _ = json.Marshal(sides[0])
	stored, _ = json.Marshal(sides[1])
	return given, stored
}

// describe returns everything that a set shows: answers in every format, explanations
// and what it says of itself. It stays the same for a set whatever happens to the project.
func (p *project) describe(set *eval.Set) string {
	out := fmt.Appendf(nil, "%v\n%v\n%v\n%d\n", set.Keys(), set.Broken(), set.BrokenCohorts(), set.Patterns(3, 101))
	for _, name := range []string{"k1", "k7", "lat", "$geoip_1", "$feature_enrollment/key-2"} {
		out = fmt.Appendf(out, "%s %t\n", name, set.ReadsPersonProperty(name))
	}
	for id := range int64(90) {
		if key, ok := set.KeyByID(id); ok {
			out = fmt.Appendf(out, "%d %s %v\n", id, key, set.Problem(id))
		}
	}
	set.EachDefinition(func(_ int, d *eval.Definition) { out = fmt.Appendf(out, "%v\n", *d) })
	known := &eval.KnownProperties{StaticCohorts: []int64{100, 103}, HashKeys: map[string]string{"key-3": "kept"}, Plugins: p.plugins}
	for i := range p.people[:2] {
		q := p.people[i].Question()
		q.DeviceID = "device"
		out = p.describeRequest(out, set, q, known)
		q.FlagKeys, q.Scope = []string{"key-9", "key-2", "key-30", "no such"}, eval.Scope{Runtime: eval.ServerRuntime, Contexts: []string{"docs"}}
		out = p.describeRequest(out, set, q, known)
	}
	return string(out)
}

func (p *project) describeRequest(out []byte, set *eval.Set, q *eval.Request, known *eval.KnownProperties) []byte {
	for _, d := range set.Evaluate(q, known, flagstest.Now) {
		out = fmt.Appendf(out, "%+v\n", d)
	}
	for _, x := range set.Explain(q, known, flagstest.Now) {
		raw, err := json.Marshal(x)
		out = fmt.Appendf(out, "%s %v\n", raw, err)
	}
	e := eval.NewEvaluation(set, q.DistinctID, flagstest.Now)
	defer e.Release()
	e.SetRequest(q)
	e.Select(q.FlagKeys, false)
	e.Limit(q.Scope)
	out = fmt.Appendf(out, "%t %t %t %v\n", e.IsScoped(), e.BucketsByDevice(), e.ReadsLocation(), e.ContinuousKeys())
	e.EndPersonLookup(true)
	e.EndStaticCohortLookup(nil, true)
	e.EndHashKeyLookup(nil, true)
	for i := range e.Groups() {
		e.EndGroupLookup(i, true)
	}
	e.Run()
	for f := eval.FormatKeys; f <= eval.FormatTyped; f++ {
		out = e.AppendFlags(out, f)
	}
	return append(out, '\n')
}

// A set that follows random changes one after the other equals one that is compiled
// from nothing, also in the order of flags and in what regular expressions it admits.
// The older sets stay as they were when they were recorded.
func TestUpdatesEqualACompilation(t *testing.T) {
	t.Parallel()
	type recorded struct {
		set  *eval.Set
		text string
	}
	for seed := range uint64(4) {
		p := newProject(seed)
		opts := eval.CompileOptions{Operators: p.plugins, Limits: match.Limits{Project: 4000}}
		if seed%2 == 0 {
			opts.Limits = match.Limits{}
		}
		var set *eval.Set
		var former []recorded
		for step := range rounds(40) {
			for range 1 + p.IntN(3) {
				p.change()
			}
			flags, cohorts := p.lists()
			set = eval.Update(set, flags, cohorts, p.types, opts)
			got := p.describe(set)
			if want := p.describe(eval.Compile(flags, cohorts, p.types, opts)); got != want {
				t.Fatalf("seed %d, step %d: %s", seed, step, difference(got, want))
			}

			former = append(former, recorded{set, got})
			if old := former[max(0, len(former)-2-p.IntN(4))]; p.describe(old.set) != old.text {
				t.Fatalf("seed %d, step %d: an older set changed: %s", seed, step, difference(p.describe(old.set), old.text))
			}
		}
	}
}

// TestCyclesEnd breaks a cycle of the flag "f" by a change of another definition, and closes it again. The sets of both
// moments stay as they are.
func TestCyclesEnd(t *testing.T) {
	t.Parallel()
	tree := func(values string) string { return `{"type":"AND","values":[` + values + `]}` }
	inCohort := `{"key":"id","type":"cohort","value":10}`
	for _, c := range []struct {
		name, flag    string // the filters of f
		cohort        string
		closed, ended string // the filters of the flag "g", or of the cohort 11
	}{
		{"a set", flagstest.DependsOn("2", "true"), `{}`, flagstest.DependsOn("1", "true"), `{}`},
		{"a set with another filter behind", `{"groups":[{"properties":[{"key":"2","type":"flag","value":true},` + inCohort + `]}]}`, `{}`, flagstest.DependsOn("1", "true"), `{}`},
		{"the second of two sets", `{"groups":[{"properties":[{"key":"none","operator":"is_set"}]},{"properties":[{"key":"2","type":"flag","value":true}]}]}`, `{}`, flagstest.DependsOn("1", "true"), `{}`},
		{"the enrolment", `{"groups":[],"super_groups":[{"properties":[{"key":"distinct_id","operator":"is_set"},{"key":"2","type":"flag","value":true}]}]}`, `{}`, flagstest.DependsOn("1", "true"), `{}`},
		{"a cohort", `{"groups":[{"properties":[` + inCohort + `]}]}`, tree(`{"key":"2","type":"flag","value":true}`), flagstest.DependsOn("1", "true"), `{}`},
		{"a tree in a cohort", `{"groups":[{"properties":[` + inCohort + `]}]}`, tree(tree(tree(`{"key":"2","type":"flag","value":true}`))), flagstest.DependsOn("1", "true"), `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := func(old *eval.Set, version int64, g string) *eval.Set {
				second := flagstest.Define(2, "g", g)
				second.Version = version
				return eval.Update(old, []eval.Definition{flagstest.Define(1, "f", c.flag), second},
					[]eval.CohortDefinition{{ID: 10, Filters: json.RawMessage(c.cohort)}}, nil, eval.CompileOptions{})
			}
			closed := at(nil, 1, c.closed)
			ended := at(closed, 2, c.ended)
			closedAgain := at(ended, 3, c.closed)
			endedAgain := at(closedAgain, 4, c.ended)
			for _, check := range []struct {
				name string
				set  *eval.Set
				f    any
			}{{"closed", closed, "dependency_cycle"}, {"ended", ended, true}, {"closed again", closedAgain, "dependency_cycle"}, {"ended again", endedAgain, true}} {
				got := values(check.set, nil)["f"]
				if c.cohort != `{}` && got == "cohort_unavailable" {
					got = "dependency_cycle"
				}
				if got != check.f {
					t.Errorf("%s: f is %v, want %v", check.name, got, check.f)
				}
			}
		})
	}
}

// TestUpdatesForget updates a set to one without what the flag "f" had, and asks both.
func TestUpdatesForget(t *testing.T) {
	t.Parallel()
	types := map[string]int{"company": 0}
	reads := func(name string) string {
		return `{"groups":[{"properties":[{"key":"` + name + `","operator":"is_set"}]},{"aggregation_group_type_index":0,"properties":[{"key":"` + name + `","operator":"is_set"}]}]}`
	}
	f := flagstest.Define(1, "f", reads("$geoip_a"))
	f.Contexts, f.ByDevice = []string{"docs"}, true
	continuous := flagstest.Define(2, "continuous", `{}`)
	continuous.ExperienceContinuity = true
	first := eval.Compile([]eval.Definition{f, continuous}, nil, types, eval.CompileOptions{})
	second := eval.Update(first, []eval.Definition{flagstest.Define(3, "other", reads("b"))}, nil, types, eval.CompileOptions{})

	say := func(set *eval.Set, properties string) string {
		q := &eval.Request{
			DistinctID: "u", DeviceID: "d", PersonProperties: json.RawMessage(properties), Groups: map[string]string{"company": "acme"},
			GroupProperties: map[string]json.RawMessage{"company": json.RawMessage(properties)},
		}
		e := eval.NewEvaluation(set, "u", flagstest.Now)
		defer e.Release()
		return fmt.Sprint(e.IsScoped(), e.BucketsByDevice(), e.ReadsLocation(), e.ContinuousKeys(), set.Keys(), results(set, properties), set.Evaluate(q, nil, flagstest.Now)[0].Condition)
	}
	for _, c := range []struct {
		set              *eval.Set
		properties, want string
	}{
		{first, `{"$geoip_a":1,"b":1}`, "true true true [continuous] [f continuous] map[continuous:true f:false] 0"},
		{first, `{"b":1}`, "true true true [continuous] [f continuous] map[continuous:true f:false] 1"},
		{second, `{"$geoip_a":1}`, "false false false [] [other] map[other:false] 1"},
		{second, `{"b":1,"$geoip_a":1}`, "false false false [] [other] map[other:true] 0"},
	} {
		if got := say(c.set, c.properties); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.properties, got, c.want)
		}
	}
}

// TestUpdatesCountProperties compiles a flag again because another one came and went. Then nothing reads its property.
func TestUpdatesCountProperties(t *testing.T) {
	t.Parallel()
	reader := flagstest.Define(1, "reader", `{"groups":[{"properties":[{"key":"p","value":1},{"key":"2","type":"flag","value":true}]}]}`)
	other := flagstest.Define(2, "other", `{}`)
	set := eval.Compile([]eval.Definition{reader}, nil, nil, eval.CompileOptions{})
	for _, defs := range [][]eval.Definition{{reader, other}, {reader}, {reader, other}} {
		if set = eval.Update(set, defs, nil, nil, eval.CompileOptions{}); !set.ReadsPersonProperty("p") {
			t.Error("the property is not read")
		}
	}
	if set = eval.Update(set, []eval.Definition{other}, nil, nil, eval.CompileOptions{}); set.ReadsPersonProperty("p") {
		t.Error("the property is still read")
	}
}

// TestUpdatesReplaceFlags replaces a flag, and a cohort, by another one in the same update: names lead to the new ones.
func TestUpdatesReplaceFlags(t *testing.T) {
	t.Parallel()
	everyone := `{"groups":[{}]}`
	byKey := flagstest.Define(1, "by-key", flagstest.DependsOn("b", "true"))
	byID := flagstest.Define(2, "by-id", flagstest.DependsOn("4", "true"))
	inCohort := flagstest.Define(5, "in-cohort", flagstest.InCohort("11", "in"))
	cohort := func(id int64) []eval.CohortDefinition {
		return []eval.CohortDefinition{{ID: id, Filters: json.RawMessage(`{"type":"AND","values":[{"key":"p","operator":"is_not_set"}]}`)}}
	}
	set := eval.Compile([]eval.Definition{byKey, byID, inCohort, flagstest.Define(3, "a", everyone)}, cohort(10), nil, eval.CompileOptions{})
	want(t, values(set, nil), map[string]any{"by-key": "missing_dependency", "by-id": "missing_dependency", "in-cohort": "cohort_unavailable", "a": true})
	next := eval.Update(set, []eval.Definition{byKey, byID, inCohort, flagstest.Define(4, "b", everyone)}, cohort(11), nil, eval.CompileOptions{})
	want(t, values(next, nil), map[string]any{"by-key": true, "by-id": true, "in-cohort": true, "b": true})
	for key, chosen := range map[string]int{"a": 0, "b": 1} {
		if got := next.Evaluate(&eval.Request{DistinctID: "u", FlagKeys: []string{key}}, nil, flagstest.Now); len(got) != chosen {
			t.Errorf("%d flags with the key %s", len(got), key)
		}
	}

	// Without the cohort, nothing reads its property.
	last := eval.Update(next, []eval.Definition{byKey, byID}, nil, nil, eval.CompileOptions{})
	if !next.ReadsPersonProperty("p") || last.ReadsPersonProperty("p") {
		t.Error("the property of a removed cohort is still read")
	}
}

// TestUpdatesKeepPlaces follows what a set keeps of the one before: a flag that did not change has its place and
// its definition, and a place that became free is used again.
func TestUpdatesKeepPlaces(t *testing.T) {
	t.Parallel()
	type place struct {
		at int
		d  *eval.Definition
	}
	places := func(set *eval.Set) map[int64]place {
		out := map[int64]place{}
		set.EachDefinition(func(at int, d *eval.Definition) { out[d.ID] = place{at, d} })
		return out
	}
	types := map[string]int{"company": 0}
	defs := func(ids ...int64) (out []eval.Definition) {
		for _, id := range ids {
			out = append(out, flagstest.Define(id, fmt.Sprint("key-", id), fmt.Sprintf(`{"groups":[{"properties":[{"key":"p%d","value":1}]}]}`, id)))
		}
		return out
	}
	span := func(from, to int64) (ids []int64) {
		for id := from; id <= to; id++ {
			ids = append(ids, id)
		}
		return ids
	}
	first := eval.Compile(defs(span(1, 200)...), nil, types, eval.CompileOptions{})
	for _, c := range []struct {
		name   string
		ids    []int64
		types  map[string]int
		kept   bool
		places int
	}{
		{"nothing changed", span(1, 200), types, true, 200},
		{"a flag went", span(2, 200), types, true, 200},
		{"one went, one came", span(2, 201), types, true, 200},
		{"one came", span(1, 201), types, true, 201},
		{"less than half went", span(1, 110), types, true, 200},
		{"most went", span(1, 90), types, false, 90},
		{"a group type came", span(1, 200), map[string]int{"company": 0, "project": 1}, false, 200},
		{"a group type has another index", span(1, 200), map[string]int{"company": 1}, false, 200},
		{"a group type has another name", span(1, 200), map[string]int{"firm": 0}, false, 200},
		{"the group types went", span(1, 200), nil, false, 200},
	} {
		second := eval.Update(first, defs(c.ids...), nil, c.types, eval.CompileOptions{})
		second = eval.Update(second, defs(c.ids...), nil, c.types, eval.CompileOptions{}) // may find the first one sparse
		before, after := places(first), places(second)
		if second.Places() != c.places || len(after) != len(c.ids) {
			t.Errorf("%s: %d flags in %d places, want %d in %d", c.name, len(after), second.Places(), len(c.ids), c.places)
		}
		for id, now := range after {
			if old, ok := before[id]; ok && c.kept != (old == now) && (c.kept || old.d == now.d) {
				t.Errorf("%s: flag %d was in %+v, is in %+v", c.name, id, old, now)
				break
			}
		}
	}

	// Many properties that nothing reads any more are reason enough for a compilation.
	for _, kind := range []string{"", `"aggregation_group_type_index":0,`} {
		readers := func(from int) eval.Definition {
			var properties []string
			for i := range 150 {
				properties = append(properties, fmt.Sprintf(`{"key":"p%d","value":1}`, from+i))
			}
			return flagstest.Define(1, "reader", `{`+kind+`"groups":[{"properties":[`+strings.Join(properties, ",")+`]}]}`)
		}
		set := eval.Compile(append(defs(2), readers(0)), nil, types, eval.CompileOptions{})
		few := eval.Update(set, append(defs(2), readers(20)), nil, types, eval.CompileOptions{})
		if places(few)[2] != places(set)[2] {
			t.Error("a few unused properties caused a compilation")
		}
		many := eval.Update(set, defs(2), nil, types, eval.CompileOptions{})
		if next := eval.Update(many, defs(2), nil, types, eval.CompileOptions{}); places(next)[2] == places(many)[2] {
			t.Error("unused properties stay")
		}
	}
}

// rounds returns how often a random test runs: a third of n with -short.
func rounds(n uint64) uint64 {
	if testing.Short() {
		return (n + 2) / 3
	}
	return n
}

// difference shows where two texts begin to differ.
func difference(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("\ngot  …%.300s\nwant …%.300s", got[max(0, at-150):], want[max(0, at-150):])
}

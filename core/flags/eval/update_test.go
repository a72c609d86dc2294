package eval_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	flags   map[int64]eval.Definition
	cohorts map[int64]eval.CohortDefinition
	types   map[string]int
	plugins *switchedOperators
	nextID  int64
}

func newProject(seed uint64) *project {
	p := &project{
		Rand: rand.New(rand.NewPCG(seed, 2)), flags: map[int64]eval.Definition{}, cohorts: map[int64]eval.CohortDefinition{},
		types: map[string]int{"company": 0, "project": 1}, plugins: &switchedOperators{},
	}
	for i := range 4 {
		p.corpora = append(p.corpora, flagstest.Generate(seed*10+uint64(i), 30, 2))
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
	switch p.IntN(12) {
	case 0, 1, 2, 3:
		name := fmt.Sprint(p.Int64N(p.nextID + 3))
		if p.IntN(3) == 0 {
			name = "key-" + name
		}
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"type":"flag","key":%q,"operator":"flag_evaluates_to","value":%t}]},{"rollout_percentage":30}]}`, name, p.IntN(2) == 0)
	case 4:
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"k1","operator":"geo/within","value":%d}],"rollout_percentage":60}]}`, p.IntN(3))
	case 5:
		return json.RawMessage(`{"groups":`)
	case 6:
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"id","type":"cohort","value":%d}]}]}`, 99+p.IntN(8))
	case 7:
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"k1","operator":"regex","value":"x{%d}"}]}]}`, 50+p.IntN(350))
	case 8:
		return fmt.Appendf(nil, `{"groups":[{"properties":[{"key":"$initial_k%d","operator":"is_set"},{"key":"$geoip_%d","operator":"is_set"}]}]}`, p.IntN(5), p.IntN(3))
	case 9:
		return fmt.Appendf(nil, `{"groups":[{"rollout_percentage":%d},{"rollout_percentage":100}],"feature_enrollment":%t}`, 100*p.IntN(2), p.IntN(4) == 0)
	}
	return raw
}

func (p *project) changeFlag(id int64) {
	d := p.flags[id]
	if d.ID == 0 {
		d = eval.Definition{ID: id, ProjectID: 1, Key: fmt.Sprintf("key-%d", id), Active: true}
	}
	d.Version++
	switch p.IntN(8) {
	case 0:
		d.Active = !d.Active
	case 1:
		d.Deleted = !d.Deleted
	case 2:
		d.Runtime = eval.Runtime(p.IntN(3))
		d.Contexts = [][]string{nil, {"main"}, {"docs", "main"}}[p.IntN(3)]
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
	switch p.IntN(6) {
	case 0:
		d.Static = true
	case 1:
		d.Filters = fmt.Appendf(nil, `{"type":"AND","values":[{"key":"id","type":"cohort","value":%d}]}`, 100+p.IntN(6))
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

// describe returns everything that a set shows: answers in every format, explanations
// and what it says of itself.
func (p *project) describe(set *eval.Set) string {
	out := fmt.Appendf(nil, "%v\n%v\n%v\n%d\n", set.Keys(), set.Broken(), set.BrokenCohorts(), set.Patterns(3, 101))
	for _, name := range []string{"k1", "k7", "lat", "$geoip_1", "$feature_enrollment/key-2"} {
		out = fmt.Appendf(out, "%s %t\n", name, set.ReadsPersonProperty(name))
	}
	for id := range p.nextID + 2 {
		key, ok := set.KeyByID(id)
		out = fmt.Appendf(out, "%s %t %v\n", key, ok, set.Problem(id))
	}
	set.EachDefinition(func(_ int, d *eval.Definition) { out = fmt.Appendf(out, "%v\n", *d) })
	known := &eval.KnownProperties{StaticCohorts: []int64{100, 103}, HashKeys: map[string]string{"key-3": "kept"}, Plugins: p.plugins}
	for i := range p.corpora[0].People {
		q := p.corpora[0].People[i].Question()
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
// The older sets stay as they were.
func TestUpdatesEqualACompilation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		p := newProject(seed)
		opts := eval.CompileOptions{Operators: p.plugins, Limits: match.Limits{Project: 4000}}
		if seed%2 == 0 {
			opts.Limits = match.Limits{}
		}
		var set, former *eval.Set
		var before string
		for step := range 40 {
			for range 1 + p.IntN(3) {
				p.change()
			}
			on := p.plugins.on
			flags, cohorts := p.lists()
			former, set = set, eval.Update(set, flags, cohorts, p.types, opts)
			got, want := p.describe(set), p.describe(eval.Compile(flags, cohorts, p.types, opts))
			if got != want {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Fatalf("seed %d, step %d:\ngot  …%.300s\nwant …%.300s", seed, step, got[max(0, at-150):], want[max(0, at-150):])
			}
			if former != nil && on == p.plugins.on && step%10 == 5 && p.describeStable(former) != before {
				t.Fatalf("seed %d, step %d: the former set changed", seed, step)
			}
			before = p.describeStable(set)
		}
	}
}

// describeStable is the part of describe that does not depend on the state of p.
func (p *project) describeStable(set *eval.Set) string {
	out := fmt.Appendf(nil, "%v %v\n", set.Keys(), set.Broken())
	known := &eval.KnownProperties{StaticCohorts: []int64{100, 103}}
	return string(p.describeRequest(out, set, p.corpora[0].People[0].Question(), known))
}

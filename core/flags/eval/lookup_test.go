package eval_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/match"
)

// noResults are plugins that have never answered.
type noResults struct{}

func (noResults) Known(match.Program, *match.Value, time.Time) (match.Result, bool) { return 0, false }

// needs names what an evaluation waits for.
func needs(e *eval.Evaluation) string {
	var out []string
	if e.NeedsPerson() {
		out = append(out, "person")
	}
	for i := range e.Groups() {
		if name, key := e.Group(i); e.NeedsGroup(i) {
			out = append(out, name+":"+key)
		}
	}
	if e.NeedsStaticCohorts() {
		out = append(out, "lists")
	}
	if e.NeedsHashKeys() {
		out = append(out, "keys")
	}
	if e.HasOpenPairs() {
		out = append(out, "plugins")
	}
	return strings.Join(out, " ")
}

// look reads what the evaluation needs from known. With ok false, nothing can be read.
func look(t *testing.T, e *eval.Evaluation, known *eval.KnownProperties, ok bool) {
	t.Helper()
	fill := func(fill func([]byte) error, raw json.RawMessage) {
		if !ok {
			return
		}
		if err := fill(raw); err != nil {
			t.Fatal(err)
		}
	}
	if e.NeedsPerson() {
		fill(e.FillPerson, known.PersonProperties)
		e.EndPersonLookup(ok)
	}
	for i := range e.Groups() {
		if name, _ := e.Group(i); e.NeedsGroup(i) {
			fill(func(raw []byte) error { return e.FillGroup(i, raw) }, known.GroupProperties[name])
			e.EndGroupLookup(i, ok)
		}
	}
	if e.NeedsStaticCohorts() {
		e.EndStaticCohortLookup(known.StaticCohorts, ok)
	}
	if e.NeedsHashKeys() {
		e.EndHashKeyLookup(known.HashKeys, ok)
	}
	if e.HasOpenPairs() {
		pairs, results := e.OpenPairs()
		for i := range pairs {
			if ok {
				results[i] = known.Plugins.Match(pairs[i].Program, &pairs[i].Value)
			}
		}
	}
}

// TestStepsEqualOneEvaluation reads only what an evaluation asks for: the decisions are those with
// everything at hand.
func TestStepsEqualOneEvaluation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		p := newProject(seed)
		p.plugins.on = true
		for step := range rounds(8) {
			for range 8 {
				p.change()
			}
			flags, cohorts := p.lists()
			set := eval.Compile(flags, cohorts, p.types, eval.CompileOptions{Operators: p.plugins})
			for i := range p.people {
				q, known := p.question(i)
				known.Plugins = p.plugins
				e := eval.NewEvaluation(set, q.DistinctID, flagstest.Now)
				e.UsePlugins(noResults{})
				e.SetRequest(q)
				e.Select(q.FlagKeys, false)
				e.Limit(q.Scope)
				for !e.Run() {
					if needs(e) == "" {
						t.Fatalf("seed %d, step %d: the evaluation waits for nothing", seed, step)
					}
					look(t, e, known, true)
				}
				want := set.Evaluate(q, known, flagstest.Now)
				if got := e.Decisions(); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %s", seed, step, difference(fmt.Sprint(got), fmt.Sprint(want)))
				}
				if e.Len() != len(want) {
					t.Fatalf("%d flags, want %d", e.Len(), len(want))
				}
				for i := range want {
					_, d := e.Decision(i)
					if d.Payload = want[i].Payload; d != want[i] || e.Failure(i) != want[i].Failed {
						t.Fatalf("%+v, want %+v", d, want[i])
					}
				}
				e.Release()
			}
		}
	}
}

// TestWhatFlagsNeed lists what one flag reads first, then its value when nothing can be read.
func TestWhatFlagsNeed(t *testing.T) {
	t.Parallel()
	const half = `"rollout_percentage":50`
	byPlan := func(more string) string {
		return `{"groups":[{"properties":[{"key":"plan","value":"pro"}` + more + `]}]}`
	}
	const plugin = `{"key":"k1","operator":"geo/within","value":22}`
	const company = `"aggregation_group_type_index":0`
	const listed = `{"key":"id","type":"cohort","value":1}`
	pro := json.RawMessage(`{"plan":"pro","k1":1,"lat":5}`)
	acme := map[string]string{"company": "acme"}
	continuous := func(d *eval.Definition) { d.ExperienceContinuity = true }
	for _, c := range []struct {
		name    string
		filters string
		change  func(d *eval.Definition)
		request eval.Request
		needs   string
		failed  string // the value when that cannot be read
	}{
		{name: "nothing for everyone", filters: `{"groups":[{}]}`, failed: "true"},
		{name: "nothing for a share", filters: `{"groups":[{` + half + `}]}`, failed: "false"},
		{name: "nothing when disabled", filters: byPlan(""), change: func(d *eval.Definition) { d.Active = false }},
		{name: "a property", filters: byPlan(""), needs: "person", failed: "stored_data_unavailable"},
		{name: "a property that the request has", filters: byPlan(""), request: eval.Request{PersonProperties: pro}, failed: "true"},
		{name: "a property after one that fails", filters: byPlan(`,{"key":"other","value":1}`), request: person(`{"plan":"free"}`), failed: "false"},
		{name: "a property after one that holds", filters: byPlan(`,{"key":"other","value":1}`), request: eval.Request{PersonProperties: pro}, needs: "person", failed: "stored_data_unavailable"},
		{name: "what identifies the person", filters: `{"groups":[{"properties":[{"key":"distinct_id","value":"distinct_id_0"}]}]}`, failed: "true"},
		{name: "the first of two sets", filters: `{"groups":[{},{"properties":[{"key":"plan","value":"pro"}]}]}`, failed: "true"},
		{name: "the second of two sets", filters: `{"groups":[{"rollout_percentage":0},{"properties":[{"key":"plan","value":"pro"}]}]}`, needs: "person", failed: "stored_data_unavailable"},
		{name: "a property that does not matter", filters: `{"groups":[{"properties":[{"key":"plan","value":"pro"}]},{}]}`, needs: "person", failed: "true"},
		{name: "enrolment", filters: `{"groups":[{}],"feature_enrollment":true}`, needs: "person", failed: "stored_data_unavailable"},

		{name: "a group", filters: `{` + company + `,"groups":[{"properties":[{"key":"plan","value":"pro"}]}]}`, request: eval.Request{Groups: acme}, needs: "company:acme", failed: "stored_data_unavailable"},
		{name: "no group", filters: `{` + company + `,"groups":[{"properties":[{"key":"plan","value":"pro"}]}]}`, failed: "false"},
		{name: "the key of a group", filters: `{` + company + `,"groups":[{"properties":[{"key":"$group_key","value":"acme"}]}]}`, request: eval.Request{Groups: acme}, failed: "true"},
		{name: "properties of the group in the request", filters: `{` + company + `,"groups":[{"properties":[{"key":"plan","value":"pro"}]}]}`,
			request: eval.Request{Groups: acme, GroupProperties: map[string]json.RawMessage{"company": pro, "unknown": pro}}, failed: "true"},
		{name: "person and group", filters: `{"groups":[{` + company + `,"properties":[{"key":"plan","value":"pro"}]},{"properties":[{"key":"plan","value":"pro"}]}]}`, request: eval.Request{Groups: acme}, needs: "company:acme", failed: "stored_data_unavailable"},

		{name: "lists of people", filters: `{"groups":[{"properties":[` + listed + `]}]}`, needs: "lists", failed: "stored_data_unavailable"},
		{name: "lists within cohorts", filters: flagstest.InCohort("2", "not_in"), request: person(`{"plan":"free"}`), needs: "lists", failed: "stored_data_unavailable"},
		{name: "no lists when the rest decides", filters: flagstest.InCohort("2", "in"), request: eval.Request{PersonProperties: pro}, failed: "true"},

		{name: "continuity for everyone", filters: `{"groups":[{}]}`, change: continuous, failed: "true"},
		{name: "continuity and a share", filters: `{"groups":[{` + half + `}]}`, change: continuous, needs: "keys", failed: "stored_data_unavailable"},
		{name: "continuity and no one", filters: `{"groups":[{"rollout_percentage":0}]}`, change: continuous, failed: "false"},
		{name: "continuity and variants", filters: `{"groups":[{}],` + flagstest.Variants + `}`, change: continuous, needs: "keys", failed: "stored_data_unavailable"},
		{name: "continuity and an override", filters: `{"groups":[{"variant":"blue"}],` + flagstest.Variants + `}`, change: continuous, failed: "blue"},
		{name: "continuity and a holdout", filters: `{"groups":[{}],"holdout":{"id":1,"exclusion_percentage":5}}`, change: continuous, needs: "keys", failed: "stored_data_unavailable"},
		{name: "continuity by device", filters: `{"groups":[{` + half + `}]}`, change: func(d *eval.Definition) { d.ExperienceContinuity, d.ByDevice = true, true }, request: eval.Request{DeviceID: "phone"}, failed: "true"},

		{name: "an unknown set with a share", filters: `{"groups":[{"properties":[{"key":"plan","value":"pro"}],` + half + `},{}]}`, change: continuous, needs: "person", failed: "stored_data_unavailable"},
		{name: "a plugin", filters: `{"groups":[{"properties":[` + plugin + `]}]}`, needs: "person", failed: "stored_data_unavailable"},
		{name: "a plugin with its properties", filters: `{"groups":[{"properties":[` + plugin + `]}]}`, request: person(`{"lat":5,"$geoip_city_name":"x"}`), needs: "plugins", failed: "operator_unavailable"},
		{name: "a plugin after what fails", filters: `{"groups":[{"properties":[` + plugin + `,{"key":"plan","value":"pro"}]}]}`, request: person(`{"plan":"free","lat":5,"$geoip_city_name":"x"}`), failed: "false"},
		{name: "a flag", filters: flagstest.DependsOn("2", "true"), needs: "person", failed: "missing_dependency"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := flagstest.Define(1, "f", c.filters)
			if c.change != nil {
				c.change(&d)
			}
			set := eval.Compile([]eval.Definition{d, flagstest.Define(2, "by-plan", byPlan(""))}, []eval.CohortDefinition{
				{ID: 1, Static: true},
				{ID: 2, Filters: json.RawMessage(`{"type":"OR","values":[{"key":"plan","value":"pro"},{"key":"id","type":"cohort","value":1}]}`)},
			}, map[string]int{"company": 0, "project": 1}, eval.CompileOptions{Operators: &switchedOperators{on: true}})

			// A trace reads what it needs, and decides the same.
			for _, traced := range []bool{false, true} {
				e := eval.NewEvaluation(set, "distinct_id_0", flagstest.Now)
				defer e.Release()
				if traced {
					e.Trace()
				}
				e.UsePlugins(noResults{})
				e.SetRequest(&c.request)
				e.Select([]string{"f"}, false)
				e.Limit(c.request.Scope)
				if done := e.Run(); !traced && (done != (c.needs == "") || needs(e) != c.needs) {
					t.Errorf("done: %t, needs %q, want %q", done, needs(e), c.needs)
				}
				for range 5 {
					look(t, e, &eval.KnownProperties{}, false)
					e.Run()
				}
				if needs(e) != "" {
					t.Errorf("still needs %s", needs(e))
				}
				got := ""
				for _, d := range e.Decisions() {
					if got = fmt.Sprint(d.Value()); d.Failed != eval.CauseNone {
						got = d.Failed.Code()
					}
				}
				if got != c.failed {
					t.Errorf("traced %t: got %s, want %s", traced, got, c.failed)
				}
			}
		})
	}
}

// TestPluginsAreAskedOnce has a flag of several sets with operators of plugins: their pairs are collected in one round,
// also those of the sets behind the one that waits, and nothing else is read for those.
func TestPluginsAreAskedOnce(t *testing.T) {
	t.Parallel()
	within := func(value int) string { return fmt.Sprintf(`{"key":"k1","operator":"geo/within","value":%d}`, value) }
	set := eval.Compile([]eval.Definition{flagstest.Define(1, "f", `{"groups":[
		{"properties":[`+within(100)+`]},
		{"properties":[`+within(200)+`]},
		{"properties":[`+within(300)+`,{"key":"lat","value":6}]},
		{"properties":[`+within(400)+`,{"key":"id","type":"cohort","value":1},{"key":"unread","operator":"is_set"}]},
		{"properties":[`+within(500)+`],"aggregation_group_type_index":0},
		{"properties":[{"key":"unread","operator":"is_set"}]},
		{"properties":[`+within(60)+`],"variant":"blue"}],`+flagstest.Variants+`}`)},
		[]eval.CohortDefinition{{ID: 1, Static: true}}, map[string]int{"company": 0}, eval.CompileOptions{Operators: &switchedOperators{on: true}})
	e := eval.NewEvaluation(set, "u", flagstest.Now)
	defer e.Release()
	e.UsePlugins(noResults{})
	properties := fastjson.MustParse(`{"lat":5,"$geoip_city_name":"x"}`).GetObject()
	e.SetPersonProperties(properties)
	if e.Run() || needs(e) != "plugins" {
		t.Fatalf("needs %q", needs(e))
	}

	var programs []string
	pairs, results := e.OpenPairs()
	for i, pair := range pairs {
		programs = append(programs, string(pair.Program))
		if got := pair.Value.Content(); got != `{"lat":5,"$geoip_city_name":"x"}` {
			t.Errorf("the plugin gets %s", got)
		}
		results[i] = match.Of(pair.Program == "60")
	}
	if want := []string{"100", "200", "400", "60"}; !slices.Equal(programs, want) {
		t.Errorf("asks for %v, want %v", programs, want)
	}

	// Now the other filters of the sets that are left are read.
	if e.Run() || needs(e) != "person lists" {
		t.Fatalf("needs %q", needs(e))
	}
	e.EndPersonLookup(true)
	e.EndStaticCohortLookup(nil, true)
	if !e.Run() {
		t.Fatalf("needs %q", needs(e))
	}
	if _, d := e.Decision(0); d.Variant != "blue" || d.Condition != 6 {
		t.Errorf("%+v", d)
	}
}

// TestSelectionsOfNothing selects no flag in new evaluations, of which none has memory of an earlier one.
func TestSelectionsOfNothing(t *testing.T) {
	t.Parallel()
	set := compile(flagstest.Define(1, "f", `{"groups":[{}]}`))
	for range 50 {
		byKey, byScope := eval.NewEvaluation(set, "u", flagstest.Now), eval.NewEvaluation(set, "u", flagstest.Now)
		defer byKey.Release()
		defer byScope.Release()
		byKey.Select([]string{"no such"}, false)
		byScope.Limit(eval.Scope{Prefix: "no such"})
		if byKey.Len() != 0 || byScope.Len() != 0 {
			t.Fatalf("%d and %d flags", byKey.Len(), byScope.Len())
		}
	}
}

// TestWhatASetSays has the answers of a set that do not depend on a request.
func TestWhatASetSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		filters string
		change  func(d *eval.Definition)
		want    string
	}{
		{"a plain flag", `{"groups":[{}]}`, func(*eval.Definition) {}, "active"},
		{"an inactive one", `{"groups":[{}]}`, func(d *eval.Definition) {
			d.Active, d.Contexts, d.Runtime, d.ByDevice, d.ExperienceContinuity = false, []string{"a"}, eval.ClientRuntime, true, true
		}, ""},
		{"contexts", `{}`, func(d *eval.Definition) { d.Contexts = []string{"docs"} }, "active scoped"},
		{"a runtime", `{}`, func(d *eval.Definition) { d.Runtime = eval.ServerRuntime }, "active scoped"},
		{"devices", `{}`, func(d *eval.Definition) { d.ByDevice = true }, "active devices"},
		{"devices of groups", `{"aggregation_group_type_index":0,"groups":[{}]}`, func(d *eval.Definition) { d.ByDevice = true }, "active devices"},
		{"continuity", `{}`, func(d *eval.Definition) { d.ExperienceContinuity = true }, "active continuous=[f] keeps=anonymous"},
		{"no continuity by device", `{}`, func(d *eval.Definition) { d.ByDevice, d.ExperienceContinuity = true, true }, "active devices"},
		{"a place", `{"groups":[{"properties":[{"key":"$geoip_city_name","value":"x"}]}]}`, func(*eval.Definition) {}, "active located reads=$geoip_city_name"},
		{"a property", `{"groups":[{"properties":[{"key":"plan","value":"x"}]}]}`, func(*eval.Definition) {}, "active reads=plan"},
		{"an enrolment", `{"feature_enrollment":true}`, func(*eval.Definition) {}, "active reads=$feature_enrollment/f"},
		{"what an initial property falls back on", `{"groups":[{"properties":[{"key":"$initial_os","value":"x"}]}]}`, func(*eval.Definition) {}, "active reads=$os"},
		{"properties that a plugin reads", `{"groups":[{"properties":[{"key":"k1","operator":"geo/within","value":5}]}]}`, func(*eval.Definition) {}, "active located reads=$geoip_city_name"},
		{"a property of a group", `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"plan","value":"x"}]}]}`, func(*eval.Definition) {}, "active"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := flagstest.Define(1, "f", c.filters)
			c.change(&d)
			set := eval.Compile([]eval.Definition{d}, nil, map[string]int{"company": 0}, eval.CompileOptions{Operators: &switchedOperators{on: true}})
			e := eval.NewEvaluation(set, "u", flagstest.Now)
			defer e.Release()
			e.SetAnonymousID("anonymous")

			var got []string
			say := func(yes bool, word string) {
				if yes {
					got = append(got, word)
				}
			}
			say(set.HasActive(), "active")
			say(e.IsScoped(), "scoped")
			say(e.BucketsByDevice(), "devices")
			say(e.ReadsLocation(), "located")
			say(len(e.ContinuousKeys()) > 0, fmt.Sprintf("continuous=%v", e.ContinuousKeys()))
			say(e.AnonymousIDToKeep() != "", "keeps="+e.AnonymousIDToKeep())
			for _, name := range []string{"plan", "$os", "$geoip_city_name", "$feature_enrollment/f", "other"} {
				say(set.ReadsPersonProperty(name), "reads="+name)
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if e.DistinctID() != "u" || !e.Now().Equal(flagstest.Now) {
				t.Errorf("%s at %s", e.DistinctID(), e.Now())
			}
			if e.Trace(); e.AnonymousIDToKeep() != "" {
				t.Error("a trace keeps an id")
			}
		})
	}
}

// TestLocationPrecedesWhatIsStored has one property from each source.
func TestLocationPrecedesWhatIsStored(t *testing.T) {
	t.Parallel()
	set := compile(flagstest.Define(1, "f", `{"groups":[{"properties":[{"key":"place","value":"NZ"}]}]}`))
	for _, c := range []struct {
		request, location, stored string
		want                      bool
	}{
		{``, `{"place":"NZ"}`, `{"place":"DE"}`, true},
		{`{"place":"DE"}`, `{"place":"NZ"}`, ``, false},
		{`{"place":null}`, `{"place":"NZ"}`, ``, true},
		{``, ``, `{"place":"NZ"}`, true},
		{`{"place":"NZ"}`, `{"place":"DE"}`, `{"place":"DE"}`, true},
		{``, `7`, `{"place":"NZ"}`, true},
		{`{"place":`, `{`, `{"place":"NZ"}`, true},
	} {
		q := &eval.Request{DistinctID: "u", PersonProperties: json.RawMessage(c.request), Location: json.RawMessage(c.location)}
		if got := set.Evaluate(q, stored(c.stored), flagstest.Now)[0].On; got != c.want {
			t.Errorf("%+v: got %t", c, got)
		}
	}

	e := eval.NewEvaluation(set, "u", flagstest.Now)
	defer e.Release()
	e.SetLocation(fastjson.MustParse(`{"place":"NZ"}`).GetObject())
	if !e.Run() || !e.Decisions()[0].On {
		t.Error("the location is not used")
	}
	for _, raw := range []string{`{"place":`, `7`} {
		if e.FillPerson([]byte(raw)) == nil {
			t.Errorf("%s is accepted", raw)
		}
	}
	if err := e.FillPerson(nil); err != nil {
		t.Error(err)
	}
}

package eval_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
)

// TestExplanations explains the flag "f" of small projects. Want has the members of interest, at any depth;
// lists are complete.
func TestExplanations(t *testing.T) {
	t.Parallel()
	const optIn = `"super_groups":[{"properties":[{"key":"$feature_enrollment/f","value":["true"]}],"rollout_percentage":100}]`
	enrolled := func(value string) eval.Request { return person(`{"$feature_enrollment/f":` + value + `}`) }
	acme := eval.Request{Groups: map[string]string{"company": "acme"}}
	for _, c := range []struct {
		name    string
		filters string
		change  func(d *eval.Definition)
		request eval.Request
		known   *eval.KnownProperties
		want    string
	}{
		{name: "everyone", filters: `{"groups":[{}],"payloads":{"true":"5"}}`, want: `{"id":1,"key":"f","version":1,"computed":true,"value":true,"payload":"5",
			"reason":{"code":"condition_match","condition_index":0,"description":"Matched condition set 1"},"bucketing_identifier":"distinct_id","evaluation_runtime":"all",
			"evaluation_contexts":[],"served":true,"subject":"person","identifier":{"value":"distinct_id_0","source":"distinct_id"},"variant":null,"depends_on":[],
			"gates":[{"name":"active","result":"passed"},{"name":"conditions","result":"decided"}],
			"conditions":[{"index":0,"subject":"person","result":"true","reason":"condition_match","filters":[],"rollout_percentage":null}]}`},
		{name: "an inactive flag", filters: `{"groups":[{}]}`, change: func(d *eval.Definition) { d.Active = false },
			want: `{"value":false,"served":false,"reason":{"code":"flag_disabled","condition_index":null,"description":"Feature flag is disabled"},
			"gates":[{"name":"active","result":"decided"}],"conditions":[{"index":0,"result":"not_reached"}]}`},
		{name: "of another runtime", filters: `{"groups":[{}]}`, change: func(d *eval.Definition) { d.Runtime = eval.ServerRuntime },
			request: eval.Request{Scope: eval.Scope{Runtime: eval.ClientRuntime}}, want: `{"value":true,"served":false,"evaluation_runtime":"server"}`},
		{name: "of other contexts", filters: `{"groups":[{}]}`, change: func(d *eval.Definition) { d.Contexts = []string{"docs", "app"} },
			request: eval.Request{Scope: eval.Scope{Contexts: []string{"web"}}}, want: `{"value":false,"served":false,"evaluation_contexts":["docs","app"],"reason":{"code":"flag_disabled"},
			"gates":[{"name":"active","result":"passed"},{"name":"contexts","result":"decided","detail":"the request names other evaluation contexts"}]}`},
		{name: "an inactive flag of other contexts", filters: `{"groups":[{}]}`, change: func(d *eval.Definition) { d.Contexts, d.Active = []string{"docs"}, false },
			request: eval.Request{Scope: eval.Scope{Contexts: []string{"web"}}}, want: `{"served":false,"gates":[{"name":"active","result":"decided"}]}`},
		{name: "an unreadable definition", filters: `{"groups":7}`, want: `{"computed":false,"failure":"invalid_definition","value":null,"reason":null,
			"gates":[{"name":"active","result":"passed"},{"name":"definition","result":"failed","detail":"invalid_input (filters): groups must be a list"}]}`},
		{name: "an unreadable definition of an inactive flag", filters: `{"groups":7}`, change: func(d *eval.Definition) { d.Active = false },
			want: `{"computed":true,"value":false,"gates":[{"name":"active","result":"decided"}]}`},

		{name: "the values that filters see", filters: `{"groups":[{"properties":[{"key":"a","type":"person","value":"x"},{"key":"b","type":"person","operator":"gt","value":3},{"key":"c","type":"person","operator":"is_set"},
			{"key":"distinct_id","value":"u"},{"key":"place","value":"NZ"},{"key":"$initial_utm_source","value":"news"},{"key":"n","value":"y"}]}]}`,
			request: eval.Request{PersonProperties: json.RawMessage(`{"a":"x","n":null}`), Location: json.RawMessage(`{"place":"NZ"}`)}, known: stored(`{"b":[2],"utm_source":"news"}`),
			want: `{"value":false,"reason":{"code":"no_condition_match","condition_index":0,"description":"No matching condition set"},
			"conditions":[{"result":"false","reason":"no_condition_match","filters":[
				{"key":"a","type":"person","operator":"exact","expected":"x","seen":"x","source":"override","result":"true"},
				{"key":"b","operator":"gt","expected":3,"seen":[2],"source":"stored","result":"false"},
				{"key":"c","operator":"is_set","expected":null,"seen":null,"source":"missing","result":"false"},
				{"key":"distinct_id","type":"","operator":"exact","seen":"distinct_id_0","source":"identity","result":"false"},
				{"key":"place","seen":"NZ","source":"location","result":"true"},
				{"key":"$initial_utm_source","seen":"news","source":"stored","result":"true"},
				{"key":"n","seen":null,"source":"override","result":"false"}]}]}`},
		{name: "sets in turn", filters: `{"groups":[{"properties":[{"key":"a","value":"x"}],"rollout_percentage":50},{"rollout_percentage":45},{"rollout_percentage":80},{}]}`,
			want: `{"value":true,"reason":{"condition_index":2,"description":"Matched condition set 3"},"conditions":[
			{"index":0,"result":"false","reason":"no_condition_match","rollout_percentage":50},
			{"index":1,"result":"false","reason":"out_of_rollout_bound","rollout_percentage":45,"filters":[],"identifier":"distinct_id_0","hash":0.770,"threshold":0.45},
			{"index":2,"result":"true","reason":"condition_match","rollout_percentage":80,"identifier":"distinct_id_0","hash":0.770,"threshold":0.8},
			{"index":3,"result":"not_reached","filters":[],"rollout_percentage":null}]}`},
		{name: "no one has a hash in a trace", filters: `{"groups":[{"rollout_percentage":0}]}`, want: `{"value":false,"conditions":[{"result":"false","reason":"out_of_rollout_bound","hash":0.770,"threshold":0}]}`},
		{name: "a variant by its interval", filters: `{"groups":[{}],` + flagstest.Variants + `,"payloads":{"blue":"9"}}`, want: `{"value":"blue","payload":"9",
			"variant":{"key":"blue","override":false,"hash":0.989,"intervals":[{"key":"control","from":0,"to":0.5,"picked":false},{"key":"blue","from":0.5,"to":1,"picked":true}]}}`},
		{name: "a variant by an override", filters: `{"groups":[{"variant":"control"}],` + flagstest.Variants + `}`, want: `{"value":"control",
			"conditions":[{"variant":"control","result":"true"}],
			"variant":{"key":"control","override":true,"intervals":[{"key":"control","from":0,"to":0.5,"picked":true},{"key":"blue","from":0.5,"to":1,"picked":false}]}}`},

		{name: "a device", filters: `{"groups":[{"rollout_percentage":50}]}`, change: func(d *eval.Definition) { d.ByDevice, d.ExperienceContinuity = true, true },
			request: eval.Request{DeviceID: "phone", AnonymousID: "anonymous"}, want: `{"bucketing_identifier":"device_id","identifier":{"value":"phone","source":"device_id"},"conditions":[{"identifier":"phone"}]}`},
		{name: "no device", filters: `{"groups":[{}]}`, change: func(d *eval.Definition) { d.ByDevice = true },
			want: `{"value":false,"bucketing_identifier":"device_id","identifier":{"value":"","source":"none"},"reason":{"code":"out_of_rollout_bound"}}`},
		{name: "the id before login", filters: `{"groups":[{}]}`, change: func(d *eval.Definition) { d.ExperienceContinuity = true },
			request: eval.Request{AnonymousID: "anonymous"}, known: &eval.KnownProperties{HashKeys: map[string]string{"other": "kept"}}, want: `{"identifier":{"value":"anonymous","source":"anon_distinct_id"}}`},
		{name: "a kept id", filters: `{"groups":[{}]}`, change: func(d *eval.Definition) { d.ExperienceContinuity = true },
			request: eval.Request{AnonymousID: "anonymous"}, known: &eval.KnownProperties{HashKeys: map[string]string{"f": "kept"}}, want: `{"identifier":{"value":"kept","source":"hash_key_override"}}`},
		{name: "continuity without either", filters: `{"groups":[{}]}`, change: func(d *eval.Definition) { d.ExperienceContinuity = true },
			want: `{"identifier":{"value":"distinct_id_0","source":"distinct_id"}}`},
		{name: "an id before login without continuity", filters: `{"groups":[{}]}`, request: eval.Request{AnonymousID: "anonymous"}, known: &eval.KnownProperties{HashKeys: map[string]string{"f": "kept"}},
			want: `{"identifier":{"value":"distinct_id_0","source":"distinct_id"}}`},
		{name: "a group", filters: `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"plan","type":"group","value":"pro"}],"rollout_percentage":50}]}`, request: acme,
			known: &eval.KnownProperties{GroupProperties: map[string]json.RawMessage{"company": json.RawMessage(`{"plan":"pro"}`)}},
			want:  `{"subject":"company","identifier":{"value":"acme","source":"group_key"},"conditions":[{"subject":"company","identifier":"acme","filters":[{"key":"plan","seen":"pro","source":"stored","result":"true"}]}]}`},
		{name: "no group", filters: `{"aggregation_group_type_index":0,"groups":[{},{"aggregation_group_type_index":null,"rollout_percentage":0},{"aggregation_group_type_index":5}]}`,
			want: `{"subject":"company","identifier":{"value":"","source":"none"},"reason":{"code":"out_of_rollout_bound","condition_index":1},
			"conditions":[{"subject":"company","result":"false","reason":"no_group_type"},{"subject":"person"},{"subject":"unknown group type","reason":"no_group_type"}]}`},

		{name: "opted in", filters: `{"groups":[],"feature_enrollment":true}`, request: enrolled(`"true"`), want: `{"value":true,"reason":{"code":"super_condition_value","condition_index":0,"description":"Super condition value"},
			"gates":[{"name":"active","result":"passed"},{"name":"enrolment","result":"decided","property":"$feature_enrollment/f","detail":"the person has opted in","seen":"true"}]}`},
		{name: "opted out", filters: `{"groups":[{}],` + optIn + `}`, request: enrolled(`false`),
			want: `{"value":false,"gates":[{"name":"active"},{"name":"enrolment","result":"decided","property":"$feature_enrollment/f","detail":"the person has opted out","seen":false}],"conditions":[{"result":"not_reached"}]}`},
		{name: "neither", filters: `{"groups":[{}],` + optIn + `}`,
			want: `{"value":true,"gates":[{"name":"active"},{"name":"enrolment","result":"passed","detail":"the person has neither opted in nor out"},{"name":"conditions","result":"decided"}]}`},
		{name: "everyone is enrolled", filters: `{"groups":[],"super_groups":[{"rollout_percentage":100}]}`,
			want: `{"value":true,"gates":[{"name":"active"},{"name":"enrolment","result":"decided","detail":"everyone within the rollout is enrolled"}]}`},
		{name: "enrolment by a flag that is missing", filters: `{"groups":[{}],"super_groups":[{"properties":[{"key":"a","operator":"is_set"},{"key":"99","type":"flag","value":true}]}]}`, request: person(`{"a":1}`),
			want: `{"computed":false,"failure":"missing_dependency","gates":[{"name":"active"},{"name":"enrolment","result":"failed","property":"a","detail":"the property cannot be read"},{"name":"conditions","result":"failed"}]}`},
		{name: "held out", filters: `{"groups":[{}],"holdout":{"id":7,"exclusion_percentage":66}}`,
			want: `{"value":"holdout-7","gates":[{"name":"active"},{"name":"holdout","result":"decided","identifier":"distinct_id_0","hash":0.656,"threshold":0.66}],"variant":null}`},
		{name: "all are held out", filters: `{"groups":[{}],"holdout":{"id":7,"exclusion_percentage":100}}`,
			want: `{"value":"holdout-7","gates":[{"name":"active"},{"name":"holdout","result":"decided","identifier":"distinct_id_0","hash":null,"threshold":1}]}`},
		{name: "not held out", filters: `{"groups":[{}],"holdout":{"id":7,"exclusion_percentage":65}}`,
			want: `{"value":true,"gates":[{"name":"active"},{"name":"holdout","result":"passed","hash":0.656,"threshold":0.65},{"name":"conditions","result":"decided"}]}`},

		{name: "cohorts have their filters within", filters: `{"groups":[{"properties":[{"key":"id","type":"cohort","value":1,"operator":"not_in"},{"key":"id","type":"cohort","value":1}]}]}`, request: person(`{"plan":"pro","age":5}`),
			want: `{"value":false,"conditions":[{"result":"false","filters":[
				{"key":"id","type":"cohort","operator":"not_in","expected":1,"source":"cohort","result":"false","filters":[
					{"key":"plan","negated":true,"seen":"pro","result":"false"},{"key":"age","operator":"gt","seen":5,"result":"true"},
					{"key":"id","type":"cohort","source":"cohort","result":"false","filters":null}]},
				{"key":"id","result":"true","filters":[{"key":"plan","result":"false"},{"key":"age","result":"true"},{"key":"id","result":"false"}]}]}]}`},
		{name: "flags it depends on, each once", filters: `{"groups":[{"properties":[{"key":"2","type":"flag","value":true},{"key":"2","type":"flag","value":false},{"key":"chain","type":"flag","value":"blue"}]}]}`,
			want: `{"value":false,"depends_on":[{"key":"on","value":true,"depends_on":[]},{"key":"chain","value":"blue","depends_on":[{"key":"on"}]}],
			"conditions":[{"filters":[{"key":"on","type":"flag","source":"flag","seen":true,"result":"true"},{"key":"on","seen":true,"result":"false"},{"key":"chain","seen":"blue","result":"true"}]}]}`},
		{name: "a flag without a value, once too", filters: `{"groups":[{"properties":[{"key":"4","type":"flag","value":true},{"key":"4","type":"flag","value":false}]}]}`,
			want: `{"computed":false,"failure":"missing_dependency","depends_on":[{"key":"lost","computed":false,"value":null}]}`},
		{name: "what cannot be known", filters: `{"groups":[{"properties":[{"key":"99","type":"flag","value":true},{"key":"a","operator":"geo/within","value":1},{"key":"id","type":"cohort","value":3},{"key":"a","type":"weather","value":1},{"key":"f","type":"flag","value":true}]}]}`,
			want: `{"computed":false,"failure":"dependency_cycle","gates":[{"name":"active"},{"name":"conditions","result":"failed"}],"conditions":[{"result":"unknown","filters":[
				{"key":"99","source":"unreadable","result":"unknown","why":"missing_dependency"},{"key":"a","source":"unreadable","why":"operator_unavailable"},
				{"key":"id","source":"cohort","why":"cohort_unavailable"},{"key":"a","why":"invalid_definition"},{"key":"f","why":"dependency_cycle","source":"unreadable"}]}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := flagstest.Define(1, "f", c.filters)
			if c.change != nil {
				c.change(&d)
			}
			set := eval.Compile([]eval.Definition{
				d, flagstest.Define(2, "on", `{"groups":[{}]}`),
				flagstest.Define(4, "lost", flagstest.DependsOn("99", "true")),
				flagstest.Define(3, "chain", `{"groups":[{"properties":[{"key":"on","type":"flag","value":true}],"variant":"blue"}],`+flagstest.Variants+`}`),
			}, []eval.CohortDefinition{
				{ID: 1, Filters: json.RawMessage(`{"type":"OR","values":[{"key":"plan","value":"pro","negation":true},{"key":"age","operator":"gt","value":3},{"key":"id","type":"cohort","value":2}]}`)},
				{ID: 2, Static: true}, {ID: 3, Filters: json.RawMessage(`[]`)},
			}, map[string]int{"company": 0}, eval.CompileOptions{})
			c.request.DistinctID = "distinct_id_0"
			raw, err := json.Marshal(set.Explain(&c.request, c.known, flagstest.Now)[0])
			if err != nil {
				t.Fatal(err)
			}
			if problem := lacks(decoded(t, string(raw)), decoded(t, c.want), "explanation"); problem != "" {
				t.Errorf("%s\n%s", problem, raw)
			}
		})
	}
}

// TestExplanationsWithoutStoredData explains filters on data that cannot be read.
func TestExplanationsWithoutStoredData(t *testing.T) {
	t.Parallel()
	set := eval.Compile([]eval.Definition{flagstest.Define(1, "f", `{"feature_enrollment":true,"groups":[{"properties":[{"key":"plan","value":"pro"},{"key":"k1","operator":"geo/within","value":5},
		{"key":"id","type":"cohort","value":1}]}]}`), flagstest.Define(2, "g", `{"groups":[{"properties":[{"key":"plan","value":"pro"},{"key":"k1","operator":"geo/within","value":5},{"key":"id","type":"cohort","value":1}]}]}`)},
		[]eval.CohortDefinition{{ID: 1, Static: true}}, nil, eval.CompileOptions{Operators: &switchedOperators{on: true}})
	e := eval.NewEvaluation(set, "u", flagstest.Now)
	defer e.Release()
	e.Trace()
	e.EndPersonLookup(false)
	e.EndStaticCohortLookup(nil, false)
	e.Run()
	raw, err := json.Marshal(e.Explanations())
	if err != nil {
		t.Fatal(err)
	}
	const why = `"result":"unknown","why":"stored_data_unavailable"`
	want := `[{"failure":"stored_data_unavailable","gates":[{"name":"active"},{"name":"enrolment","result":"failed","detail":"the property cannot be read"},{"name":"conditions","result":"failed"}]},
		{"failure":"stored_data_unavailable","conditions":[{"result":"unknown","filters":[{"key":"plan","seen":null,"source":"unreadable",` + why + `},
			{"key":"id","source":"cohort",` + why + `},{"key":"k1","plugin":"plugin","seen":null,"source":"unreadable",` + why + `}]}]}]`
	if problem := lacks(decoded(t, string(raw)), decoded(t, want), "explanations"); problem != "" {
		t.Errorf("%s\n%s", problem, raw)
	}
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// lacks returns where got differs from the members that want has. Numbers may differ by their fourth digit.
func lacks(got, want any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		members, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", path, got)
		}
		for name, value := range want {
			if problem := lacks(members[name], value, path+"."+name); problem != "" {
				return problem
			}
		}
		return ""
	case []any:
		items, ok := got.([]any)
		if !ok || len(items) != len(want) {
			return fmt.Sprintf("%s is %v, want %d items", path, got, len(want))
		}
		for i := range want {
			if problem := lacks(items[i], want[i], fmt.Sprintf("%s[%d]", path, i)); problem != "" {
				return problem
			}
		}
		return ""
	case float64:
		if n, ok := got.(float64); ok && n > want-0.001 && n < want+0.001 {
			return ""
		}
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}

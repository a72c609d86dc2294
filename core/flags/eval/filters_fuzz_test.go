package eval_test

import (
	"encoding/json"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/flags/flagstest"
)

// FuzzFilters stores any text as the filters of a flag and of a cohort and
// evaluates the flag in all ways: nothing panics, the explanation agrees with
// the decision, and a flag without filters is unaffected.
func FuzzFilters(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `{"groups":[` + flagstest.Everyone + `,` + pro + `],` + flagstest.Variants + `}`, flagstest.DependsOn("2", "true"), flagstest.InCohort("1", "not_in"),
		`{"groups":[{"properties":[{"key":"a","operator":"regex","value":"(a+)+$"},{"key":"b","operator":"is_date_before","value":"-1m"}],"rollout_percentage":33.3}]}`,
		`{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"$group_key","operator":"between","value":["1",2]}],"aggregation_group_type_index":null}]}`,
		`{"type":"OR","values":[{"type":"AND","values":[{"key":"id","type":"cohort","value":1,"negation":true}]}]}`,
		`{"super_groups":[{"properties":[{"key":"x"}]}],"feature_enrollment":true,"holdout":{"id":1,"exclusion_percentage":1e400},"early_exit":true,"payloads":{"true":"\u0000"}}`,
		`{"groups":[{"rollout_percentage":-0.0,"variant":"\ud800"}]}`, `{"groups":[{"properties":[{"key":"a","operator":"semver_caret","value":"99999999999999999999.1"}]}]}`,
	} {
		f.Add(text, `{"a":"x","b":[1,{"c":null}],"plan":"pro"}`, "u")
	}
	f.Fuzz(func(t *testing.T, text, properties, id string) {
		parsed, err := filters.Parse([]byte(text))
		if err != nil && len(parsed.Groups) > 0 {
			t.Error("Parse returned filters with an error")
		}
		set := eval.Compile([]eval.Definition{flagstest.Define(1, "f", text), flagstest.Define(2, "g", flagstest.DependsOn("1", "true")), flagstest.Define(3, "h", flagstest.InCohort("1", "in")), flagstest.Define(4, "plain", `{}`)},
			[]eval.CohortDefinition{{ID: 1, Filters: json.RawMessage(text)}}, map[string]int{"company": 0}, eval.CompileOptions{})
		q := &eval.Request{DistinctID: id, Groups: map[string]string{"company": id}, PersonProperties: json.RawMessage(properties)}
		known := &eval.KnownProperties{PersonProperties: json.RawMessage(text), GroupProperties: map[string]json.RawMessage{"company": json.RawMessage(properties)}}
		decided := set.Evaluate(q, known, flagstest.Now)
		explained := set.Explain(q, known, flagstest.Now)
		for i, d := range decided {
			e := explained[i]
			if e.Computed != (d.Failed == eval.CauseNone) || e.Computed && e.Value != d.Value() {
				t.Errorf("%s: decided %+v, explained %+v", d.Key, d, e)
			}
		}
		if _, err := json.Marshal(explained); err != nil {
			t.Errorf("explanation: %v", err)
		}
		if last := decided[3]; !last.On || last.Failed != eval.CauseNone {
			t.Errorf("the flag without filters: %+v", last)
		}
	})
}

package eval_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
)

// TestAnswersInEveryFormat writes the same flags in each form of answers.
func TestAnswersInEveryFormat(t *testing.T) {
	t.Parallel()
	inactive := flagstest.Define(9, "inactive", `{"groups":[{}]}`)
	inactive.Active = false
	versioned := flagstest.Define(1, `says "on"`, `{"groups":[{"properties":[{"key":"x"}]},{}],"payloads":{"true":"{\"a\":1}","blue":"2"}}`)
	versioned.Version = 7
	set := eval.Compile([]eval.Definition{
		versioned,
		flagstest.Define(2, "off", `{"groups":[`+flagstest.NoOne+`],"payloads":{"true":"1"}}`),
		flagstest.Define(3, "missing", flagstest.DependsOn("99", "true")),
		flagstest.Define(4, "blue", `{"groups":[{"variant":"blue"}],`+flagstest.Variants+`,"payloads":{"blue":"\"sky\"","control":"1","true":"2"}}`),
		flagstest.Define(5, "control", `{"groups":[{"variant":"control"}],`+flagstest.Variants+`,"payloads":{"blue":"1"}}`),
		flagstest.Define(6, "held", `{"groups":[{}],"holdout":{"id":4,"exclusion_percentage":100},"payloads":{"holdout-4":"null","true":"1"}}`),
		flagstest.Define(7, "no-set", `{"groups":[]}`),
		inactive,
	}, nil, nil, eval.CompileOptions{})

	const broken = `"errorsWhileComputingFlags":true,"errorComputingFlags":true,`
	const complete = `"errorsWhileComputingFlags":false,"errorComputingFlags":false,`
	const meta = `,"description":null,"has_experiment":false,"payload":`
	const newer = `,"config_version":1`
	details := func(failed string) string {
		return `"flags":{` +
			`"says \"on\"":{"key":"says \"on\"","enabled":true,"variant":null,"reason":{"code":"condition_match","condition_index":1,"description":"Matched condition set 2"},"metadata":{"id":1,"version":7` + meta + `"{\"a\":1}"}},` +
			`"off":{"key":"off","enabled":false,"variant":null,"reason":{"code":"out_of_rollout_bound","condition_index":0,"description":"Out of rollout bound"},"metadata":{"id":2,"version":1` + meta + `null}},` +
			failed +
			`"blue":{"key":"blue","enabled":true,"variant":"blue","reason":{"code":"condition_match","condition_index":0,"description":"Matched condition set 1"},"metadata":{"id":4,"version":1` + meta + `"\"sky\""}},` +
			`"control":{"key":"control","enabled":true,"variant":"control","reason":{"code":"condition_match","condition_index":0,"description":"Matched condition set 1"},"metadata":{"id":5,"version":1` + meta + `null}},` +
			`"held":{"key":"held","enabled":true,"variant":"holdout-4","reason":{"code":"holdout_condition_value","condition_index":null,"description":"Holdout condition value"},"metadata":{"id":6,"version":1` + meta + `"null"}},` +
			`"no-set":{"key":"no-set","enabled":false,"variant":null,"reason":{"code":"no_group_type","condition_index":null,"description":"No group type"},"metadata":{"id":7,"version":1` + meta + `null}}` +
			`},` + broken
	}
	const cause = `"failed":true,"reason":{"code":"missing_dependency","condition_index":null,"description":"A flag that this flag depends on cannot be evaluated"}`

	for _, c := range []struct {
		name   string
		format eval.Format
		keys   []string
		want   string
	}{
		{"keys", eval.FormatKeys, nil, `"featureFlags":["says \"on\"","blue","control","held"],` + broken},
		{"on", eval.FormatOn, nil, `"featureFlags":{"says \"on\"":true,"blue":"blue","control":"control","held":"holdout-4"},` + broken},
		{"values", eval.FormatValues, nil, `"featureFlags":{"says \"on\"":true,"off":false,"blue":"blue","control":"control","held":"holdout-4","no-set":false},` +
			`"featureFlagPayloads":{"says \"on\"":"{\"a\":1}","blue":"\"sky\"","held":"null"},` + broken},
		{"details leave failed flags out", eval.FormatDetails, nil, details("")},
		{"records have them", eval.FormatRecords, nil, details(`"missing":{"key":"missing","enabled":false,"variant":null,` + cause + `,"metadata":{"id":3,"version":1` + meta + `null}},`)},
		{"typed values", eval.FormatTyped, []string{"off", "missing", "blue", "held"}, `"flags":{` +
			`"off":{"key":"off","value":false,"reason":{"code":"out_of_rollout_bound","condition_index":0,"description":"Out of rollout bound"},"metadata":{"id":2,"version":1` + newer + meta + `null}},` +
			`"missing":{"key":"missing","value":null,` + cause + `,"metadata":{"id":3,"version":1` + newer + meta + `null}},` +
			`"blue":{"key":"blue","value":"blue","reason":{"code":"condition_match","condition_index":0,"description":"Matched condition set 1"},"metadata":{"id":4,"version":1` + newer + meta + `"\"sky\"","variant_key":"blue"}},` +
			`"held":{"key":"held","value":"holdout-4","reason":{"code":"holdout_condition_value","condition_index":null,"description":"Holdout condition value"},"metadata":{"id":6,"version":1` + newer + meta + `"null","variant_key":"holdout-4"}}` +
			`},` + broken},
		{"typed, on", eval.FormatTyped, []string{`says "on"`}, `"flags":{"says \"on\"":{"key":"says \"on\"","value":true,"reason":{"code":"condition_match","condition_index":1,"description":"Matched condition set 2"},"metadata":{"id":1,"version":7` + newer + meta + `"{\"a\":1}"}}},` + complete},
		{"without a failed flag", eval.FormatKeys, []string{"blue", "off"}, `"featureFlags":["blue"],` + complete},
		{"details without one", eval.FormatDetails, []string{"no such"}, `"flags":{},` + complete},
		{"an inactive flag is left out", eval.FormatValues, []string{"inactive", "off"}, `"featureFlags":{"off":false},"featureFlagPayloads":{},` + complete},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := eval.NewEvaluation(set, "u", flagstest.Now)
			defer e.Release()
			e.Select(c.keys, false)
			e.EndPersonLookup(true)
			if !e.Run() {
				t.Fatal("data is missing")
			}
			got := string(e.AppendFlags([]byte("before "), c.format))
			if want := "before " + c.want; got != want {
				t.Error(difference(got, want))
			}
			if text := "{" + strings.TrimSuffix(strings.TrimPrefix(got, "before "), ",") + "}"; !json.Valid([]byte(text)) {
				t.Errorf("not JSON: %s", text)
			}
		})
	}

	for format, want := range []string{
		eval.FormatKeys: `"featureFlags":[],`, eval.FormatOn: `"featureFlags":{},`, eval.FormatValues: `"featureFlags":{},"featureFlagPayloads":{},`,
		eval.FormatDetails: `"flags":{},`, eval.FormatRecords: `"flags":{},`, eval.FormatTyped: `"flags":{},`,
	} {
		if got := string(eval.AppendNoFlags(nil, eval.Format(format))); got != want+complete {
			t.Errorf("no flags in format %d: %s", format, got)
		}
	}
}

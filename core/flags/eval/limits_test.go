package eval_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/match"
)

// soon is a generous bound of the time of a test on a slow machine.
const soon = time.Minute

// pattern returns filters with regular expressions on a property.
func pattern(key string, patterns ...string) string {
	var list []map[string]any
	for _, p := range patterns {
		list = append(list, map[string]any{"key": key, "operator": "regex", "value": p})
	}
	raw, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"properties": list}}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// results evaluates all flags for a person with properties.
func results(set *eval.Set, properties string) map[string]string {
	out := map[string]string{}
	q := &eval.Request{DistinctID: "u", PersonProperties: json.RawMessage(properties)}
	for _, d := range set.Evaluate(q, nil, flagstest.Now) {
		out[d.Key] = d.Failed.Code()
		if d.Failed == eval.CauseNone {
			out[d.Key] = fmt.Sprint(d.On)
		}
	}
	return out
}

func TestFlagsOverTheLimitFailAlone(t *testing.T) {
	t.Parallel()
	began := time.Now()
	bomb := make([]string, 18)
	for i := range bomb {
		bomb[i] = strings.Repeat("(a?){1000}", 380)
	}
	inTree := `{"properties":{"type":"AND","values":[{"key":"k","type":"person","operator":"regex","value":"` + strings.Repeat("(a?){1000}", 100) + `"}]}}`
	set := eval.Compile([]eval.Definition{
		flagstest.Define(1, "before", pattern("k", "^a")),
		flagstest.Define(2, "bomb", pattern("k", bomb...)),
		flagstest.Define(3, "depends", flagstest.DependsOn("2", "true")),
		flagstest.Define(4, "in-cohort", flagstest.InCohort("1", "in")),
		flagstest.Define(5, "many", pattern("k", strings.Split(strings.Repeat("b{900},", 60)+"b", ",")...)),
		flagstest.Define(6, "after", `{"groups":[{}]}`),
	}, []eval.CohortDefinition{{ID: 1, Filters: json.RawMessage(inTree)}}, nil, eval.CompileOptions{})
	got := fmt.Sprint(results(set, `{"k":"abc"}`))
	want := fmt.Sprint(map[string]string{
		"before": "true", "bomb": "regex_too_large", "depends": "missing_dependency", "in-cohort": "regex_too_large", "many": "regex_too_large", "after": "true",
	})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(set.Broken()) != 2 || len(set.BrokenCohorts()) != 1 || set.Problem(2) == nil || set.Problem(1) != nil || set.Problem(99) != nil {
		t.Errorf("broken: %v, cohorts: %v", set.Broken(), set.BrokenCohorts())
	}
	if n := set.Patterns(0, 0); n > 20 {
		t.Errorf("%d instructions are compiled", n)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("took %s", took)
	}
	e := set.Explain(&eval.Request{DistinctID: "u", FlagKeys: []string{"bomb"}}, nil, flagstest.Now)[0]
	if e.Computed || e.Failure != "regex_too_large" || !strings.Contains(e.Gates[len(e.Gates)-1].Detail, "too large") {
		t.Errorf("%+v", e)
	}
}

// TestProjectLimit admits flags in the order of their ids.
func TestProjectLimit(t *testing.T) {
	t.Parallel()
	limits := match.Limits{Expression: 1000, Definition: 1000, Project: 2000}
	var defs []eval.Definition
	for id := int64(5); id > 0; id-- {
		defs = append(defs, flagstest.Define(id, fmt.Sprint(id), pattern("k", "a{600}")))
	}
	set := eval.Compile(defs, nil, nil, eval.CompileOptions{Limits: limits})
	got := fmt.Sprint(results(set, `{"k":"`+strings.Repeat("a", 600)+`"}`))
	if want := "map[1:true 2:true 3:true 4:regex_too_large 5:regex_too_large]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if all, rest := set.Patterns(0, 0), set.Patterns(1, 0); all < 1800 || rest < 1200 || rest > all-600 {
		t.Errorf("sizes %d and %d", all, rest)
	}

	inCohort := eval.CohortDefinition{ID: 7, Filters: json.RawMessage(`{"type":"AND","values":[{"key":"k","operator":"regex","value":"a{600}"}]}`)}
	set = eval.Compile(defs[4:], []eval.CohortDefinition{inCohort}, nil, eval.CompileOptions{Limits: limits})
	if all, rest := set.Patterns(0, 0), set.Patterns(0, 7); all < 1200 || rest < 600 || rest > all-600 {
		t.Errorf("sizes %d and %d with a cohort", all, rest)
	}
}

func TestEvaluationBudget(t *testing.T) {
	t.Parallel()
	needles := make([]string, 900)
	for i := range needles {
		needles[i] = strings.Repeat("a", 400) + fmt.Sprint(i)
	}
	multi, _ := json.Marshal(needles)
	defs := []eval.Definition{
		flagstest.Define(1, "many-texts", `{"groups":[{"properties":[{"key":"big","operator":"icontains_multi","value":`+string(multi)+`}]}]}`),
		flagstest.Define(2, "long-text", pattern("big", "b")),
		flagstest.Define(3, "cheap", pattern("small", "^x$")),
		flagstest.Define(4, "none", `{"groups":[{}]}`),
		flagstest.Define(5, "not", `{"groups":[{"properties":[{"key":"big","operator":"not_icontains_multi","value":`+string(multi)+`}]}]}`),
	}
	for id := int64(10); id < 400; id++ {
		defs = append(defs, flagstest.Define(id, fmt.Sprintf("f%03d", id), pattern("mid", "(a?){300}!$")))
	}
	set := eval.Compile(defs, nil, nil, eval.CompileOptions{})
	properties := fmt.Sprintf(`{"big":"%s","mid":"%s","small":"x"}`, strings.Repeat("a", 100<<10), strings.Repeat("a", 500))
	began := time.Now()
	got := results(set, properties)
	took := time.Since(began)
	for key, want := range map[string]string{
		"many-texts": "evaluation_budget_spent", "long-text": "text_too_long", "cheap": "true", "none": "true", "not": "evaluation_budget_spent",
		"f010": "false", "f399": "evaluation_budget_spent",
	} {
		if got[key] != want {
			t.Errorf("%s: %s, want %s", key, got[key], want)
		}
	}
	if took > soon {
		t.Errorf("took %s", took)
	}
	if again := results(set, properties); fmt.Sprint(again) != fmt.Sprint(got) {
		t.Error("another result for the same input")
	}
	for _, e := range set.Explain(&eval.Request{DistinctID: "u", PersonProperties: json.RawMessage(properties)}, nil, flagstest.Now) {
		if want := got[e.Key]; want != e.Failure && (e.Failure != "" || want != fmt.Sprint(e.Value)) {
			t.Errorf("%s: explained %q %v, decided %s", e.Key, e.Failure, e.Value, want)
		}
		if e.Key == "not" && e.Conditions[0].Filters[0].Why != "evaluation_budget_spent" {
			t.Errorf("%+v", e.Conditions[0])
		}
	}
}

// TestBudgetOfTraces has filters after one that decides: only a trace evaluates them. The budget is exactly
// what a decision needs, so that a trace must not take from it.
func TestBudgetOfTraces(t *testing.T) {
	t.Parallel()
	const heavy = `{"key":"mid","type":"person","operator":"regex","value":"(a?){300}!$"}`
	const yes, no = `{"key":"small","type":"person","value":"x"}`, `{"key":"small","type":"person","value":"no"}`
	cohort := func(id int64, filters string) eval.CohortDefinition {
		return eval.CohortDefinition{ID: id, Filters: json.RawMessage(filters)}
	}
	compile := func(budget int64) *eval.Set {
		return eval.Compile([]eval.Definition{
			flagstest.Define(1, "set", `{"groups":[{"properties":[`+no+`,`+heavy+`]}]}`),
			flagstest.Define(2, "any", flagstest.InCohort("1", "in")),
			flagstest.Define(3, "all", flagstest.InCohort("2", "in")),
			flagstest.Define(4, "trees", flagstest.InCohort("3", "in")),
			flagstest.Define(5, "needs", flagstest.InCohort("4", "in")),
			flagstest.Define(6, "needs-again", flagstest.InCohort("4", "in")),
			flagstest.Define(7, "last", pattern("mid", "(a?){300}!$")),
		}, []eval.CohortDefinition{
			cohort(1, `{"type":"OR","values":[`+yes+`,`+heavy+`]}`), cohort(2, `{"type":"AND","values":[`+no+`,`+heavy+`]}`),
			cohort(3, `{"type":"AND","values":[{"type":"OR","values":[`+no+`]},{"type":"OR","values":[`+heavy+`]}]}`),
			cohort(4, `{"type":"OR","values":[`+heavy+`]}`),
		}, nil, eval.CompileOptions{Budget: budget})
	}
	properties := fmt.Sprintf(`{"mid":"%s","small":"x"}`, strings.Repeat("a", 500))
	q := &eval.Request{DistinctID: "u", PersonProperties: json.RawMessage(properties)}
	_, work := compile(0).EvaluateWork(q, nil, flagstest.Now)

	if work == 0 {
		t.Fatal("no work")
	}
	q.FlagKeys = []string{"needs"}
	_, once := compile(0).EvaluateWork(q, nil, flagstest.Now)
	q.FlagKeys = []string{"needs", "needs-again"}
	if _, twice := compile(0).EvaluateWork(q, nil, flagstest.Now); once != twice {
		t.Errorf("a cohort takes %d units, %d for two flags", once, twice)
	}
	q.FlagKeys = nil

	set := compile(work)
	got := results(set, properties)
	if fmt.Sprint(got) != "map[all:false any:true last:false needs:false needs-again:false set:false trees:false]" {
		t.Fatal(got)
	}
	for _, e := range set.Explain(q, nil, flagstest.Now) {
		if !e.Computed || fmt.Sprint(e.Value) != got[e.Key] {
			t.Errorf("%s: explained %v %s", e.Key, e.Value, e.Failure)
		}
	}
	if got := results(compile(work-1), properties); got["last"] != "evaluation_budget_spent" {
		t.Errorf("a smaller budget is enough: %v", got)
	}
}

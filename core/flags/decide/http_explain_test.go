package decide_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/flagstest"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/bucket"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// explainProject is a project whose flags show every step of an explanation.
func explainProject() *memorySource {
	s := sampleProject()
	s.stored.Cohorts = []eval.CohortDefinition{{ID: 5, Filters: json.RawMessage(`{"type":"AND","values":[{"key":"email","type":"person","operator":"ends_with","value":".test"}]}`)}}
	s.stored.Flags = append(s.stored.Flags,
		flagstest.Define(20, "steps", `{"groups":[
			{"properties":[{"key":"plan","type":"person","operator":"exact","value":["pro"]},{"key":"email","type":"person","operator":"icontains","value":"corp"},{"key":"age","type":"person","operator":"gt","value":3}],"rollout_percentage":50},
			{"properties":[{"key":"id","type":"cohort","value":5},{"key":"1","type":"flag","operator":"flag_evaluates_to","value":true}],"rollout_percentage":0},
			{"properties":[],"rollout_percentage":99.5},{"properties":[]}],`+flagstest.Variants+`,"holdout":{"id":1,"exclusion_percentage":0},"feature_enrollment":true}`),
		flagstest.Define(21, "broken", `{"groups":7}`), flagstest.Define(22, "unknown-cohort", flagstest.InCohort("77", "in")),
	)
	return s
}

func TestExplanationShowsEveryStep(t *testing.T) {
	t.Parallel()
	w := &memoryStore{people: map[string]string{"u": `{"email":"u@corp.test","plan":"pro"}`}}
	base := serve(t, explainProject(), around(w))
	status, got, _ := post(t, base+"/api/projects/@current/feature_flags/20/explain/", "application/json",
		`{"distinct_id":"u","person_properties":{"plan":"free"}}`, "Authorization", "Bearer phx_test")
	if status != 200 {
		t.Fatalf("%d %v", status, got)
	}
	raw, _ := json.Marshal(got)
	var e eval.Explanation
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	var gates []string
	for _, g := range e.Gates {
		gates = append(gates, g.Name+" "+g.Result)
	}
	if s := strings.Join(gates, ", "); s != "active passed, enrolment passed, holdout passed, conditions decided" {
		t.Errorf("gates: %s", s)
	}
	if !e.Computed || e.Value != "blue" && e.Value != "control" || e.Reason.Code != "condition_match" || *e.Reason.Condition != 2 {
		t.Errorf("value %v, reason %+v", e.Value, e.Reason)
	}
	if e.Identifier.Value != "u" || e.Identifier.Source != "distinct_id" || e.Subject != "person" {
		t.Errorf("identifier %+v", e.Identifier)
	}
	results := ""
	for _, c := range e.Conditions {
		results += c.Result + " " + c.Reason + ";"
	}
	if results != "false no_condition_match;false out_of_rollout_bound;true condition_match;not_reached ;" {
		t.Errorf("conditions: %s", results)
	}
	seen := func(set, filter int) string {
		f := e.Conditions[set].Filters[filter]
		return f.Key + " " + f.Operator + " " + string(f.Expected) + " " + string(f.Seen) + " " + f.Source + " " + f.Result
	}
	for i, want := range []string{
		`plan exact ["pro"] "free" override false`, `email icontains "corp" "u@corp.test" stored true`, `age gt 3 null missing false`,
	} {
		if got := seen(0, i); got != want {
			t.Errorf("filter %d: got %s, want %s", i, got, want)
		}
	}
	if got := seen(1, 0); got != `id in 5 null cohort true` && got != `id  5 null cohort true` {
		t.Errorf("cohort: %s", got)
	}
	if within := e.Conditions[1].Filters[0].Within; len(within) != 1 || within[0].Key != "email" || within[0].Result != "true" {
		t.Errorf("within the cohort: %+v", within)
	}
	if got := seen(1, 1); got != `on flag_evaluates_to true true flag true` || len(e.DependsOn) != 1 || e.DependsOn[0].Key != "on" || e.DependsOn[0].Value != true {
		t.Errorf("dependency: %s %+v", got, e.DependsOn)
	}
	c := e.Conditions[2]
	if c.Hash == nil || *c.Hash != bucket.Of("steps", "u", "") || c.Threshold == nil || *c.Threshold != 0.995 || *c.Rollout != 99.5 {
		t.Errorf("rollout: %+v", c)
	}
	if v := e.Variant; v == nil || v.Override || *v.Hash != bucket.Of("steps", "u", "variant") || len(v.Intervals) != 2 || v.Intervals[1].From != 0.5 || v.Intervals[0].Picked == v.Intervals[1].Picked {
		t.Errorf("variant: %+v", v)
	}
}

func TestExplainAllFlags(t *testing.T) {
	t.Parallel()
	base := serve(t, explainProject(), decide.Lookups{})
	status, got, _ := post(t, base+"/api/projects/1/feature_flags/explain", "application/json", `{"distinct_id":42,"groups":{"company":"acme"}}`, "Authorization", "Bearer phx_test")
	all, _ := got["flags"].(map[string]any)
	if status != 200 || len(all) != 9 || got["errorsWhileComputingFlags"] != true {
		t.Fatalf("%d %v", status, got)
	}
	about := func(key, name string) any { return all[key].(map[string]any)[name] }
	if about("broken", "computed") != false || about("broken", "failure") != "invalid_definition" || about("unknown-cohort", "failure") != "cohort_unavailable" {
		t.Errorf("broken: %v, cohort: %v", all["broken"], all["unknown-cohort"])
	}
	if about("inactive", "value") != false || about("inactive", "reason").(map[string]any)["code"] != "flag_disabled" {
		t.Errorf("inactive: %v", all["inactive"])
	}
	if about("company", "identifier").(map[string]any)["source"] != "group_key" || about("company", "subject") != "company" {
		t.Errorf("company: %v", all["company"])
	}
	if v := about("blue", "variant").(map[string]any); v["override"] != true || v["key"] != "blue" || about("blue", "payload") != "7" {
		t.Errorf("blue: %v", all["blue"])
	}
}

func TestExplainRejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	keys := webtest.DefaultKeys()
	reader := *keys.Principals["phx_test"]
	reader.Scopes = []string{"action:read"}
	keys.Principals["phx_actions"] = &reader
	d, _ := decider(t, sampleProject(), decide.Lookups{})
	base := webtest.Serve(t, keys, decide.NewHTTP(d, nil))
	for _, c := range []struct {
		name, path, body, key string
		status                int
		code, attr            any
	}{
		{"an unknown flag", "/feature_flags/99/explain", `{"distinct_id":"u"}`, "phx_test", 404, "not_found", nil},
		{"a flag that is no number", "/feature_flags/x/explain", `{"distinct_id":"u"}`, "phx_test", 404, "not_found", nil},
		{"no distinct id", "/feature_flags/1/explain", `{}`, "phx_test", 400, "required", "distinct_id"},
		{"properties that are none", "/feature_flags/explain", `{"distinct_id":"u","person_properties":[]}`, "phx_test", 400, nil, "person_properties"},
		{"groups without a key", "/feature_flags/explain", `{"distinct_id":"u","groups":{"company":{}}}`, "phx_test", 400, "invalid_input", "groups"},
		{"no credentials", "/feature_flags/1/explain", `{"distinct_id":"u"}`, "", 401, "not_authenticated", nil},
		{"another scope", "/feature_flags/1/explain", `{"distinct_id":"u"}`, "phx_actions", 403, "permission_denied", nil},
	} {
		req, _ := http.NewRequest(http.MethodPost, base+"/api/projects/1"+c.path, strings.NewReader(c.body))
		if c.key != "" {
			req.Header.Set("Authorization", "Bearer "+c.key)
		}
		status, got, _ := send(t, req)
		if status != c.status || c.code != nil && got["code"] != c.code || got["attr"] != c.attr {
			t.Errorf("%s: got %d %v", c.name, status, got)
		}
	}
}

// TestExplanationEqualsAnswer decides and explains for many people.
func TestExplanationEqualsAnswer(t *testing.T) {
	t.Parallel()
	d, _ := decider(t, explainProject(), around(&memoryStore{people: map[string]string{"u1": `{"plan":"pro","email":"a@corp.test","age":9}`}}))
	ctx := context.Background()
	for i := range 50 {
		q := &eval.Request{DistinctID: "u" + string(rune('0'+i%10)), PersonProperties: json.RawMessage([]string{`{}`, `{"plan":"pro"}`}[i%2])}
		decided := map[string]eval.Decision{}
		for _, f := range d.Decide(ctx, 1, q) {
			decided[f.Key] = f
		}
		explained, _ := d.Explain(ctx, 1, q)
		for _, e := range explained {
			f, ok := decided[e.Key]
			if !ok {
				continue
			}
			if e.Computed != (f.Failed == eval.CauseNone) || e.Computed && (e.Value != f.Value() || e.Reason.Code != f.Reason.Code()) {
				t.Errorf("%s for %s: explained %v %+v, decided %+v", e.Key, q.DistinctID, e.Value, e.Reason, f)
			}
		}
	}
}

// TestExplanationHidesStoredValues asks with keys that may not read persons.
func TestExplanationHidesStoredValues(t *testing.T) {
	t.Parallel()
	keys := webtest.DefaultKeys()
	flagsOnly, withPersons := *keys.Principals["phx_test"], *keys.Principals["phx_test"]
	flagsOnly.Scopes, withPersons.Scopes = []string{"feature_flag:write"}, []string{"feature_flag:read", "person:read"}
	keys.Principals["phx_flags"], keys.Principals["phx_persons"] = &flagsOnly, &withPersons
	d, _ := decider(t, explainProject(), around(&memoryStore{people: map[string]string{"u": `{"email":"secret@corp.test","plan":"pro"}`}}))
	base := webtest.Serve(t, keys, decide.NewHTTP(d, nil))
	for key, secret := range map[string]bool{"phx_flags": false, "phx_persons": true, "phx_test": true} {
		for _, path := range []string{"/20/explain/", "/explain/"} {
			status, got, _ := post(t, base+"/api/projects/1/feature_flags"+path, "application/json",
				`{"distinct_id":"u","person_properties":{"plan":"pro","given":"shown"}}`, "Authorization", "Bearer "+key)
			raw, _ := json.Marshal(got)
			text := string(raw)
			if status != 200 || strings.Contains(text, "secret@") != secret || strings.Contains(text, `"hidden":true`) == secret {
				t.Errorf("%s %s = %d %s", key, path, status, text)
			}
			if !strings.Contains(text, `"seen":"pro","source":"override"`) {
				t.Errorf("%s: the value of the request is hidden: %s", key, text)
			}
		}
	}
}

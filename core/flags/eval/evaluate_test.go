package eval_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
)

// pro is a condition set for people with the plan pro.
const pro = `{"properties":[{"key":"plan","type":"person","operator":"exact","value":"pro"}],"rollout_percentage":null}`

func TestEvaluateOneFlag(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name      string
		filters   string
		request   eval.Request
		known     *eval.KnownProperties
		value     any
		reason    string
		condition int
		payload   string
	}{
		{name: "empty filters are on for everyone", filters: `{}`, value: true, reason: "condition_match"},
		{name: "top-level properties are one condition set", filters: `{"properties":[{"key":"plan","value":"pro"}]}`,
			request: person(`{"plan":"free"}`), value: false, reason: "no_condition_match"},
		{name: "no condition sets are off", filters: `{"groups":[]}`, value: false, reason: "no_group_type", condition: -1},
		{name: "a matching set without rollout is on", filters: `{"groups":[` + pro + `]}`,
			request: person(`{"plan":"PRO"}`), value: true, reason: "condition_match"},
		{name: "properties of the request precede the stored ones", filters: `{"groups":[` + pro + `]}`,
			request: person(`{"plan":"free"}`), known: stored(`{"plan":"pro"}`), value: false, reason: "no_condition_match"},
		{name: "stored properties fill what the request does not give", filters: `{"groups":[` + pro + `]}`,
			request: person(`{"other":1}`), known: stored(`{"plan":"pro"}`), value: true, reason: "condition_match"},
		{name: "a null in the request hides the stored value", filters: `{"groups":[` + pro + `]}`,
			request: person(`{"plan":null}`), known: stored(`{"plan":"pro"}`), value: false, reason: "no_condition_match"},
		{name: "the last of equal names counts", filters: `{"groups":[` + pro + `]}`,
			request: person(`{"plan":"pro","plan":"free"}`), value: false, reason: "no_condition_match"},
		{name: "the distinct id is a property", filters: `{"groups":[{"properties":[{"key":"distinct_id","value":"u"}]}]}`,
			value: true, reason: "condition_match"},
		{name: "an initial property is filled from the current one",
			filters: `{"groups":[{"properties":[{"key":"$initial_utm_source","value":"news"}]}]}`,
			known:   stored(`{"utm_source":"news"}`), value: true, reason: "condition_match"},
		{name: "out of the rollout", filters: `{"groups":[` + flagstest.NoOne + `]}`, value: false, reason: "out_of_rollout_bound"},
		{name: "the reason with the highest precedence, of the last set with it",
			filters: `{"groups":[` + flagstest.NoOne + `,` + flagstest.NoOne + `,` + pro + `]}`, value: false, reason: "out_of_rollout_bound", condition: 1},
		{name: "sets are tried in order", filters: `{"groups":[` + flagstest.Everyone + `,{"properties":[],"variant":"blue"}],
			"multivariate":{"variants":[{"key":"control","rollout_percentage":100},{"key":"blue","rollout_percentage":0}]}}`,
			value: "control", reason: "condition_match"},
		{name: "an override names the variant", filters: `{"groups":[{"properties":[],"variant":"blue"}],` + flagstest.Variants + `}`,
			request: eval.Request{DistinctID: "u"}, value: "blue", reason: "condition_match"},
		{name: "an override that does not exist is no override", filters: `{"groups":[{"properties":[],"variant":"red"}],
			"multivariate":{"variants":[{"key":"control","rollout_percentage":100}]}}`, value: "control", reason: "condition_match"},
		{name: "a bucket outside all variants is true", filters: `{"groups":[` + flagstest.Everyone + `],
			"multivariate":{"variants":[{"key":"control","rollout_percentage":0}]}}`, value: true, reason: "condition_match"},
		{name: "the payload of the value true", filters: `{"groups":[` + flagstest.Everyone + `],"payloads":{"true":"{\"a\":1}"}}`,
			value: true, reason: "condition_match", payload: `{"a":1}`},
		{name: "a payload that is not a string is encoded as one", filters: `{"groups":[` + flagstest.Everyone + `],"payloads":{"true":{"a":[1.50,"é\n"]}}}`,
			value: true, reason: "condition_match", payload: `{"a":[1.50,"é\n"]}`},
		{name: "the payload of the variant", filters: `{"groups":[{"properties":[],"variant":"blue"}],` + flagstest.Variants + `,"payloads":{"blue":"7","control":"8"}}`,
			value: "blue", reason: "condition_match", payload: `7`},
		{name: "no payload when off", filters: `{"groups":[` + flagstest.NoOne + `],"payloads":{"true":"1"}}`, value: false, reason: "out_of_rollout_bound"},
		{name: "early exit stops at a set whose rollout excludes", filters: `{"groups":[` + flagstest.NoOne + `,` + flagstest.Everyone + `],"early_exit":true}`,
			value: false, reason: "out_of_rollout_bound"},
		{name: "without early exit the next set is tried", filters: `{"groups":[` + flagstest.NoOne + `,` + flagstest.Everyone + `]}`,
			value: true, reason: "condition_match", condition: 1},
		{name: "a value that its operator cannot use matches nothing",
			filters: `{"groups":[{"properties":[{"key":"v","operator":"semver_gt","value":"x"}]}]}`,
			request: person(`{"v":"1.0"}`), value: false, reason: "no_condition_match"},
		{name: "negation is for cohorts only", filters: `{"groups":[{"properties":[{"key":"plan","value":"pro","negation":true}]}]}`,
			request: person(`{"plan":"pro"}`), value: true, reason: "condition_match"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.request.DistinctID = "u"
			got := compile(flagstest.Define(1, "f", c.filters)).Evaluate(&c.request, c.known, flagstest.Now)[0]
			if got.Failed != eval.CauseNone {
				t.Fatalf("failed: %s", got.Failed.Code())
			}
			if got.Value() != c.value || got.Reason.Code() != c.reason || got.Condition != c.condition || got.Payload != c.payload {
				t.Errorf("got %v %s %d %q, want %v %s %d %q",
					got.Value(), got.Reason.Code(), got.Condition, got.Payload, c.value, c.reason, c.condition, c.payload)
			}
		})
	}
}

func person(properties string) eval.Request {
	return eval.Request{PersonProperties: json.RawMessage(properties)}
}

func stored(properties string) *eval.KnownProperties {
	return &eval.KnownProperties{PersonProperties: json.RawMessage(properties)}
}

func TestEvaluateGroupFlags(t *testing.T) {
	t.Parallel()
	const byPlan = `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"plan","type":"group","group_type_index":0,"value":"pro"}]}]}`
	acme := map[string]string{"company": "acme"}
	pro := map[string]json.RawMessage{"company": json.RawMessage(`{"plan":"pro"}`)}
	cases := []struct {
		name      string
		filters   string
		request   eval.Request
		known     *eval.KnownProperties
		value     any
		reason    string
		condition int
	}{
		{"a request without the group", byPlan, eval.Request{}, nil, false, "no_group_type", 0},
		{"an empty group key is no group", byPlan, eval.Request{Groups: map[string]string{"company": ""}}, nil, false, "no_group_type", 0},
		{"stored group properties", byPlan, eval.Request{Groups: acme}, &eval.KnownProperties{GroupProperties: pro}, true, "condition_match", 0},
		{"group properties of the request", byPlan, eval.Request{Groups: acme, GroupProperties: pro}, nil, true, "condition_match", 0},
		{"person properties are not group properties", byPlan, eval.Request{Groups: acme, PersonProperties: json.RawMessage(`{"plan":"pro"}`)}, nil, false, "no_condition_match", 0},
		{"the group key is a property", `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"$group_key","type":"group","value":"acme"}]}]}`,
			eval.Request{Groups: acme}, nil, true, "condition_match", 0},
		{"a group type that does not exist", `{"aggregation_group_type_index":4,"groups":[` + flagstest.Everyone + `]}`, eval.Request{Groups: acme}, nil, false, "no_group_type", 0},
		{"a set with an aggregation of its own", `{"groups":[{"properties":[],"aggregation_group_type_index":1},{"properties":[],"rollout_percentage":100}]}`,
			eval.Request{Groups: acme}, nil, true, "condition_match", 1},
		{"an explicit null aggregates by person", `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"plan","value":"pro"}],"aggregation_group_type_index":null}]}`,
			eval.Request{PersonProperties: json.RawMessage(`{"plan":"pro"}`)}, nil, true, "condition_match", 0},
		{"each subject has a bucket of its own", `{"groups":[{"properties":[],"rollout_percentage":45},{"properties":[],"rollout_percentage":45,"aggregation_group_type_index":0}]}`,
			eval.Request{Groups: map[string]string{"company": "distinct_id_1"}}, nil, true, "condition_match", 1},
		{"groups are hashed by their key", `{"aggregation_group_type_index":0,"groups":[{"properties":[],"rollout_percentage":45}]}`,
			eval.Request{Groups: map[string]string{"company": "distinct_id_1"}}, nil, true, "condition_match", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.request.DistinctID = "distinct_id_0"
			got := compile(flagstest.Define(1, "simple-flag", c.filters)).Evaluate(&c.request, c.known, flagstest.Now)[0]
			if got.Failed != eval.CauseNone || got.Value() != c.value || got.Reason.Code() != c.reason || got.Condition != c.condition {
				t.Errorf("got %v %s %d %s, want %v %s %d", got.Value(), got.Reason.Code(), got.Condition, got.Failed.Code(), c.value, c.reason, c.condition)
			}
		})
	}
}

func TestChecksBeforeConditionSets(t *testing.T) {
	t.Parallel()
	enrol := func(value string) *eval.KnownProperties { return stored(`{"$feature_enrollment/f":` + value + `}`) }
	const super = `"super_groups":[{"properties":[{"key":"$feature_enrollment/f","type":"person","operator":"exact","value":["true"]}],"rollout_percentage":100}]`
	cases := []struct {
		name    string
		filters string
		known   *eval.KnownProperties
		value   any
		reason  string
	}{
		{"opted in", `{"groups":[` + flagstest.NoOne + `],"feature_enrollment":true}`, enrol(`"true"`), true, "super_condition_value"},
		{"opted in by a boolean", `{"groups":[` + flagstest.NoOne + `],"feature_enrollment":true}`, enrol(`true`), true, "super_condition_value"},
		{"opted out", `{"groups":[` + flagstest.Everyone + `],"feature_enrollment":true}`, enrol(`"no"`), false, "super_condition_value"},
		{"no answer continues with the condition sets", `{"groups":[` + flagstest.Everyone + `],"feature_enrollment":true}`, nil, true, "condition_match"},
		{"opted in, older form", `{"groups":[` + flagstest.NoOne + `],` + super + `}`, enrol(`"true"`), true, "super_condition_value"},
		{"opted out, older form", `{"groups":[` + flagstest.Everyone + `],` + super + `}`, enrol(`"false"`), false, "super_condition_value"},
		{"no answer, older form", `{"groups":[` + flagstest.NoOne + `],` + super + `}`, nil, false, "out_of_rollout_bound"},
		{"the newer form goes first", `{"groups":[` + flagstest.NoOne + `],"feature_enrollment":true,"super_groups":[{"properties":[],"rollout_percentage":0}]}`, enrol(`"true"`), true, "super_condition_value"},
		{"enrolment without properties is a rollout", `{"groups":[` + flagstest.NoOne + `],"super_groups":[{"properties":[],"rollout_percentage":100}]}`, nil, true, "super_condition_value"},
		{"enrolment without properties decides", `{"groups":[` + flagstest.Everyone + `],"super_groups":[{"properties":[],"rollout_percentage":0}]}`, nil, false, "out_of_rollout_bound"},
		{"no variant for those who opted in", `{"groups":[],"feature_enrollment":true,` + flagstest.Variants + `}`, enrol(`"true"`), true, "super_condition_value"},
		{"held out", `{"groups":[` + flagstest.Everyone + `],"holdout":{"id":7,"exclusion_percentage":100}}`, nil, "holdout-7", "holdout_condition_value"},
		{"held out by the older form", `{"groups":[` + flagstest.Everyone + `],"holdout_groups":[{"properties":[],"rollout_percentage":100,"variant":"holdout-9"}]}`, nil, "holdout-9", "holdout_condition_value"},
		{"inside the share of the holdout", `{"groups":[` + flagstest.Everyone + `],"holdout":{"id":7,"exclusion_percentage":66}}`, nil, "holdout-7", "holdout_condition_value"},
		{"outside the share of the holdout", `{"groups":[` + flagstest.Everyone + `],"holdout":{"id":7,"exclusion_percentage":65}}`, nil, true, "condition_match"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := compile(flagstest.Define(1, "f", c.filters)).Evaluate(&eval.Request{DistinctID: "distinct_id_0"}, c.known, flagstest.Now)[0]
			if got.Failed != eval.CauseNone || got.Value() != c.value || got.Reason.Code() != c.reason {
				t.Errorf("got %v %s %s, want %v %s", got.Value(), got.Reason.Code(), got.Failed.Code(), c.value, c.reason)
			}
		})
	}
}

// values evaluates a set for "u" and returns the values by flag key. The value of
// a failed flag is its cause.
func values(s *eval.Set, known *eval.KnownProperties) map[string]any {
	out := map[string]any{}
	for _, d := range s.Evaluate(&eval.Request{DistinctID: "u"}, known, flagstest.Now) {
		if out[d.Key] = d.Value(); d.Failed != eval.CauseNone {
			out[d.Key] = d.Failed.Code()
		}
	}
	return out
}

func want(t *testing.T, got, want map[string]any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestEvaluateFlagDependencies(t *testing.T) {
	t.Parallel()
	on, off := `{"groups":[`+flagstest.Everyone+`]}`, `{"groups":[`+flagstest.NoOne+`]}`
	blue := `{"groups":[{"properties":[],"variant":"blue"}],` + flagstest.Variants + `}`
	inactive := flagstest.Define(9, "inactive", on)
	inactive.Active = false
	deleted := flagstest.Define(10, "deleted", on)
	deleted.Deleted = true
	set := compile(
		flagstest.Define(1, "needs-on", flagstest.DependsOn("2", "true")), flagstest.Define(2, "on", on), flagstest.Define(3, "off", off), flagstest.Define(4, "blue", blue),
		flagstest.Define(11, "needs-off", flagstest.DependsOn("3", "false")), flagstest.Define(12, "off-is-not-on", flagstest.DependsOn("3", "true")),
		flagstest.Define(13, "any-variant-is-on", flagstest.DependsOn("4", "true")), flagstest.Define(14, "this-variant", flagstest.DependsOn("4", `"blue"`)),
		flagstest.Define(15, "other-variant", flagstest.DependsOn("4", `"control"`)), flagstest.Define(16, "by-key", flagstest.DependsOn("on", "true")),
		flagstest.Define(17, "inactive-is-off", flagstest.DependsOn("9", "false")), flagstest.Define(18, "missing", flagstest.DependsOn("99", "true")),
		flagstest.Define(19, "deleted-is-missing", flagstest.DependsOn("10", "true")), flagstest.Define(20, "chain", flagstest.DependsOn("1", "true")),
		flagstest.Define(21, "broken-chain", flagstest.DependsOn("18", "true")), flagstest.Define(22, "invalid-value", flagstest.DependsOn("2", "7")),
		flagstest.Define(23, "self", flagstest.DependsOn("23", "true")), flagstest.Define(24, "tick", flagstest.DependsOn("25", "true")), flagstest.Define(25, "tock", flagstest.DependsOn("24", "false")),
		flagstest.Define(26, "outside-the-cycle", flagstest.DependsOn("24", "true")), inactive, deleted,
		flagstest.Define(27, "other-set-matches", `{"groups":[{"properties":[{"key":"99","type":"flag","operator":"flag_evaluates_to","value":true}]},`+flagstest.Everyone+`]}`),
		flagstest.Define(28, "earlier-filter-fails", `{"groups":[{"properties":[{"key":"x","value":"y"},{"key":"99","type":"flag","operator":"flag_evaluates_to","value":true}]}]}`),
		flagstest.Define(29, "other-variant-possible", `{"groups":[{"properties":[{"key":"99","type":"flag","operator":"flag_evaluates_to","value":true}],"variant":"blue"},{"properties":[],"variant":"control"}],`+flagstest.Variants+`}`),
	)
	want(t, values(set, nil), map[string]any{
		"needs-on": true, "on": true, "off": false, "blue": "blue", "needs-off": true, "off-is-not-on": false,
		"any-variant-is-on": true, "this-variant": true, "other-variant": false, "by-key": true, "inactive-is-off": true,
		"missing": "missing_dependency", "deleted-is-missing": "missing_dependency", "chain": true, "broken-chain": "missing_dependency",
		"invalid-value": false, "self": "dependency_cycle", "tick": "dependency_cycle", "tock": "dependency_cycle",
		"outside-the-cycle": "missing_dependency", "other-set-matches": true, "earlier-filter-fails": false,
		"other-variant-possible": "missing_dependency",
	})
}

func TestEvaluateCohorts(t *testing.T) {
	t.Parallel()
	cohort := func(id int64, filters string) eval.CohortDefinition {
		return eval.CohortDefinition{ID: id, Filters: json.RawMessage(filters)}
	}
	leaf := `{"key":"plan","type":"person","operator":"exact","value":"pro"}`
	cohorts := []eval.CohortDefinition{
		cohort(1, `{"type":"OR","values":[{"type":"AND","values":[`+leaf+`,{"key":"age","type":"person","operator":"gt","value":30}]},{"type":"AND","values":[{"key":"vip","type":"person","operator":"is_set"}]}]}`),
		cohort(2, `{"properties":{"type":"AND","values":[`+leaf+`]}}`),
		cohort(3, `{"type":"AND","values":[{"key":"plan","type":"person","value":"pro","negation":true}]}`),
		cohort(4, `{"type":"AND","values":[{"key":"id","type":"cohort","value":2,"negation":true}]}`),
		cohort(5, `{}`), cohort(6, `{"type":"AND","values":[]}`), cohort(7, `{"type":"OR","values":[]}`),
		{ID: 8, Static: true}, {ID: 9, Static: true},
		cohort(10, `{"type":"AND","values":[{"key":"id","type":"cohort","value":11}]}`),
		cohort(11, `{"type":"AND","values":[{"key":"id","type":"cohort","value":10}]}`),
		cohort(12, `{"type":"AND","values":[{"key":"$pageview","type":"behavioral","value":"performed_event"}]}`),
		cohort(13, `[]`), {ID: 14, Deleted: true},
		cohort(16, `{"type":"AND","values":[{"key":"vip","type":"person","operator":"is_set"},{"type":"AND","values":[`+leaf+`]}]}`),
		cohort(15, `{"type":"OR","values":[{"key":"$pageview","type":"behavioral"},`+leaf+`]}`),
	}
	set := eval.Compile([]eval.Definition{
		flagstest.Define(1, "nested", flagstest.InCohort("1", "in")), flagstest.Define(2, "wrapped", flagstest.InCohort(`"2"`, "exact")), flagstest.Define(3, "not-in", flagstest.InCohort("2", "not_in")),
		flagstest.Define(4, "negated-leaf", flagstest.InCohort("3", "in")), flagstest.Define(5, "negated-cohort", flagstest.InCohort("4", "in")), flagstest.Define(6, "empty", flagstest.InCohort("5", "in")),
		flagstest.Define(7, "all-of-nothing", flagstest.InCohort("6", "in")), flagstest.Define(8, "any-of-nothing", flagstest.InCohort("7", "in")), flagstest.Define(9, "listed", flagstest.InCohort("8", "in")),
		flagstest.Define(10, "not-listed", flagstest.InCohort("9", "not_in")), flagstest.Define(11, "cycle", flagstest.InCohort("10", "in")), flagstest.Define(12, "events", flagstest.InCohort("12", "in")),
		flagstest.Define(13, "unreadable", flagstest.InCohort("13", "in")), flagstest.Define(14, "deleted", flagstest.InCohort("14", "in")), flagstest.Define(15, "missing", flagstest.InCohort("99", "not_in")),
		flagstest.Define(16, "other-alternative-matches", flagstest.InCohort("15", "in")), flagstest.Define(17, "operator", flagstest.InCohort("2", "gt")),
		flagstest.Define(20, "a-filter-and-a-group", flagstest.InCohort("16", "in")),
		flagstest.Define(19, "unreadable-again", flagstest.InCohort("13", "in")),
		flagstest.Define(18, "person-cohort-in-a-group-flag", `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"id","type":"cohort","value":2}]}]}`),
	}, cohorts, map[string]int{"company": 0}, eval.CompileOptions{})
	known := &eval.KnownProperties{PersonProperties: json.RawMessage(`{"plan":"pro","age":31}`), StaticCohorts: []int64{8}}
	got := values(set, known)
	want(t, got, map[string]any{
		"nested": true, "wrapped": true, "not-in": false, "negated-leaf": false, "negated-cohort": false, "empty": true,
		"all-of-nothing": true, "any-of-nothing": false, "listed": true, "not-listed": true, "cycle": "dependency_cycle",
		"events": "invalid_definition", "unreadable": "cohort_unavailable", "deleted": "cohort_unavailable", "missing": "cohort_unavailable",
		"other-alternative-matches": true, "operator": "operator_unavailable", "unreadable-again": "cohort_unavailable", "a-filter-and-a-group": false, "person-cohort-in-a-group-flag": false,
	})
}

func TestBrokenFlagDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	bad := []string{
		`[]`, `7`, `{`, `{"groups":7}`, `{"groups":[7]}`, `{"groups":[{"properties":{}}]}`, `{"groups":[{"rollout_percentage":"x"}]}`,
		`{"groups":[],"multivariate":[]}`, `{"groups":[],"multivariate":{"variants":[{"key":"a"}]}}`, `{"groups":[],"payloads":[]}`,
		`{"groups":[{"properties":[{"key":"a","operator":"cidr/contains","value":"x"}]}]}`,
		`{"groups":[{"properties":[{"key":"a","operator":"teleports","value":"x"}]}]}`,
		`{"groups":[{"properties":[{"key":"a","type":"weather","value":"x"}]}]}`, `{"aggregation_group_type_index":"x"}`,
	}
	defs := []eval.Definition{flagstest.Define(1, "good", `{"groups":[`+flagstest.Everyone+`]}`)}
	for i, filters := range bad {
		defs = append(defs, flagstest.Define(int64(i+2), "bad"+string(rune('a'+i)), filters))
	}
	set := compile(defs...)
	for key, value := range values(set, nil) {
		if _, failed := value.(string); failed != (key != "good") {
			t.Errorf("%s: got %v", key, value)
		}
	}
}

func TestExperienceContinuityHashesKeptIdentifier(t *testing.T) {
	t.Parallel()
	d := flagstest.Define(1, "simple-flag", `{"groups":[{"properties":[],"rollout_percentage":45}]}`)
	d.ExperienceContinuity = true
	set := compile(d)
	evaluate := func(anonymous string, kept map[string]string) any {
		q := &eval.Request{DistinctID: "distinct_id_0", AnonymousID: anonymous}
		return set.Evaluate(q, &eval.KnownProperties{HashKeys: kept}, flagstest.Now)[0].Value()
	}
	if evaluate("", nil) != false || evaluate("distinct_id_1", nil) != true {
		t.Error("without a kept identifier the anonymous id is hashed, then the distinct id")
	}
	if evaluate("distinct_id_0", map[string]string{"simple-flag": "distinct_id_2"}) != true {
		t.Error("the kept identifier must precede all others")
	}
}

package flags_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/flags/local"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/match"
)

// property is a body with one filter in one set.
func property(p string) string {
	return `{"key":"new","filters":{"groups":[{"properties":[` + p + `],"rollout_percentage":50}]}}`
}

func TestWriteRules(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.create(`{"key":"taken"}`)              // 1
	h.create(`{"key":"off","active":false}`) // 2
	h.create(`{"key":"gone"}`)               // 3
	h.patch(3, `{"deleted":true}`).want(200) //
	h.cohort(`{"name":"people","filters":{"properties":{"type":"AND","values":[]}}}`)
	h.cohort(`{"name":"deleted","filters":{"properties":{"type":"AND","values":[]}}}`)
	h.do("PATCH", cohortsPath+"2/", `{"deleted":true}`).want(200)
	long := strings.Repeat("é", 400)
	values := func(n int) string { return `["` + strings.Repeat(`x","`, n-1) + `x"]` }
	variants := func(shares string) string {
		return `{"key":"new","filters":{"groups":[{"properties":[]}],"multivariate":{"variants":[` + shares + `]}}}`
	}
	cases := []struct{ name, body, code, attr string }{
		{"key is missing", `{}`, "required", "key"},
		{"key is null", `{"key":null}`, "null", "key"},
		{"key is blank", `{"key":"  "}`, "blank", "key"},
		{"key is no text", `{"key":{}}`, "invalid_input", "key"},
		{"key of 400 characters is not too long, but invalid", `{"key":"` + long + `"}`, "invalid_key", "key"},
		{"key is too long", `{"key":"` + long + `x"}`, "max_length", "key"},
		{"key is taken", `{"key":"taken"}`, "unique", "key"},
		{"key with a dot", `{"key":"a.b"}`, "invalid_key", "key"},
		{"key with a slash", `{"key":"a/b"}`, "invalid_key", "key"},
		{"key with a space", `{"key":"a b"}`, "invalid_key", "key"},
		{"key with a question mark", `{"key":"a?b"}`, "invalid_key", "key"},
		{"key with a backslash", `{"key":"a\\b"}`, "invalid_key", "key"},
		{"key with a NUL", `{"key":"a\u0000b"}`, "null_characters_not_allowed", "key"},
		{"active is no boolean", `{"key":"new","active":"maybe"}`, "invalid_input", "active"},
		{"created_at is no time", `{"key":"new","created_at":"soon"}`, "invalid_input", "created_at"},
		{"rollback conditions are no object", `{"key":"new","rollback_conditions":7}`, "invalid_input", "rollback_conditions"},
		{"tags are no list", `{"key":"new","tags":"a"}`, "not_a_list", "tags"},
		{"a tag is too long", `{"key":"new","tags":["a","` + long + `"]}`, "max_length", "tags__1"},
		{"unknown dashboard", `{"key":"new","analytics_dashboards":[999]}`, "does_not_exist", "analytics_dashboards"},
		{"filters are null", `{"key":"new","filters":null}`, "null", "filters"},
		{"filters are a list", `{"key":"new","filters":[]}`, "not_a_dict", "filters"},
		{"filters are a text", `{"key":"new","filters":"x"}`, "not_a_dict", "filters"},
		{"no condition set", `{"key":"new","filters":{"groups":[]}}`, "invalid_input", "filters"},
		{"groups are no list", `{"key":"new","filters":{"groups":{}}}`, "invalid_input", "filters"},
		{"groups are null", `{"key":"new","filters":{"groups":null}}`, "invalid_input", "filters"},
		{"a set is no object", `{"key":"new","filters":{"groups":[3]}}`, "invalid_input", "filters"},
		{"properties are no list", `{"key":"new","filters":{"groups":[{"properties":{}}]}}`, "invalid_input", "filters"},
		{"a property is no object", property(`"x"`), "invalid_input", "filters"},
		{"a property has no key", property(`{"type":"person","value":"x"}`), "invalid_input", "filters"},
		{"person flag with an event property", property(`{"key":"a","type":"event","value":"x"}`), "invalid_input", "filters"},
		{"person flag with a group property", property(`{"key":"a","type":"group","group_type_index":0,"value":"x"}`), "invalid_input", "filters"},
		{"group flag with a person property", `{"key":"new","filters":{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"a","type":"person","value":"x"}]}]}}`, "invalid_input", "filters"},
		{"group flag with another group type", `{"key":"new","filters":{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"a","type":"group","group_type_index":1,"value":"x"}]}]}}`, "invalid_input", "filters"},
		{"a set back to persons with a group property", `{"key":"new","filters":{"aggregation_group_type_index":0,"groups":[{"aggregation_group_type_index":null,"properties":[{"key":"a","type":"group","group_type_index":0,"value":"x"}]}]}}`, "invalid_input", "filters"},
		{"aggregation is a text", `{"key":"new","filters":{"aggregation_group_type_index":"0","groups":[{}]}}`, "invalid_input", "filters"},
		{"aggregation is a fraction", `{"key":"new","filters":{"aggregation_group_type_index":0.5,"groups":[{}]}}`, "invalid_input", "filters"},
		{"aggregation is beyond the last group type", `{"key":"new","filters":{"groups":[{"aggregation_group_type_index":5}]}}`, "invalid_input", "filters"},
		{"override of no variant", `{"key":"new","filters":{"groups":[{"variant":"blue"}]}}`, "invalid_input", "filters"},
		{"override is a number", `{"key":"new","filters":{"groups":[{"variant":1}]}}`, "invalid_input", "filters"},
		{"variants below 100", variants(`{"key":"a","rollout_percentage":50},{"key":"b","rollout_percentage":49.9}`), "invalid_input", "filters"},
		{"variants above 100", variants(`{"key":"a","rollout_percentage":50},{"key":"b","rollout_percentage":51}`), "invalid_input", "filters"},
		{"variant without a share", variants(`{"key":"a","rollout_percentage":null}`), "invalid_input", "filters"},
		{"variant above 100", variants(`{"key":"a","rollout_percentage":140}`), "invalid_input", "filters"},
		{"variant without a key", variants(`{"rollout_percentage":100}`), "invalid_input", "filters"},
		{"two variants of one key", variants(`{"key":"a","rollout_percentage":50},{"key":"a","rollout_percentage":50}`), "invalid_input", "filters"},
		{"variants are no list", `{"key":"new","filters":{"groups":[{}],"multivariate":{"variants":3}}}`, "invalid_input", "filters"},
		{"multivariate is a list", `{"key":"new","filters":{"groups":[{}],"multivariate":[]}}`, "invalid_input", "filters"},
		{"payloads are a list", `{"key":"new","filters":{"groups":[{}],"payloads":[1]}}`, "invalid_input", "filters"},
		{"payload of a boolean flag not for true", `{"key":"new","filters":{"groups":[{}],"payloads":{"false":"1"}}}`, "invalid_input", "filters"},
		{"two payloads of a boolean flag", `{"key":"new","filters":{"groups":[{}],"payloads":{"true":"1","x":"2"}}}`, "invalid_input", "filters"},
		{"payload of no variant", `{"key":"new","filters":{"groups":[{}],"multivariate":{"variants":[{"key":"a","rollout_percentage":100}]},"payloads":{"true":"1"}}}`, "invalid_input", "filters"},
		{"payload text is not JSON", `{"key":"new","filters":{"groups":[{}],"payloads":{"true":"{oops"}}}`, "invalid_input", "filters"},
		{"rollout above 100", `{"key":"new","filters":{"groups":[{"rollout_percentage":140}]}}`, "invalid_input", "filters"},
		{"rollout below 0", `{"key":"new","filters":{"groups":[{"rollout_percentage":-0.1}]}}`, "invalid_input", "filters"},
		{"rollout is a text", `{"key":"new","filters":{"groups":[{"rollout_percentage":"50"}]}}`, "invalid_input", "filters"},
		{"rollout is beyond all numbers", `{"key":"new","filters":{"groups":[{"rollout_percentage":1e999}]}}`, "invalid_input", "filters"},
		{"rollout is true", `{"key":"new","filters":{"groups":[{"rollout_percentage":true}]}}`, "invalid_input", "filters"},
		{"unknown operator", property(`{"key":"a","type":"person","operator":"looks_like","value":"x"}`), "invalid_operator", "filters"},
		{"operator is a number", property(`{"key":"a","type":"person","operator":3,"value":"x"}`), "invalid_operator", "filters"},
		{"operator of events", property(`{"key":"a","type":"person","operator":"is_cleaned_path_exact","value":"x"}`), "unsupported_operator", "filters"},
		{"operator of flags on a person", property(`{"key":"a","type":"person","operator":"flag_evaluates_to","value":true}`), "unsupported_operator", "filters"},
		{"operator of a plugin that is not there", property(`{"key":"a","type":"person","operator":"acme/near","value":"x"}`), "invalid_operator", "filters"},
		{"in without a cohort", property(`{"key":"a","type":"person","operator":"in","value":["x"]}`), "invalid_operator", "filters"},
		{"not_in without a cohort", property(`{"key":"a","type":"person","operator":"not_in","value":["x"]}`), "invalid_operator", "filters"},
		{"regex of a list", property(`{"key":"a","type":"person","operator":"regex","value":["x"]}`), "invalid_value", "filters"},
		{"icontains of a list", property(`{"key":"a","type":"person","operator":"icontains","value":["x"]}`), "invalid_value", "filters"},
		{"not_icontains of an object", property(`{"key":"a","type":"person","operator":"not_icontains","value":{}}`), "invalid_value", "filters"},
		{"not_regex of true", property(`{"key":"a","type":"person","operator":"not_regex","value":true}`), "invalid_value", "filters"},
		{"gt of a list", property(`{"key":"a","type":"person","operator":"gt","value":[1]}`), "invalid_value", "filters"},
		{"lte of null", property(`{"key":"a","type":"person","operator":"lte","value":null}`), "invalid_value", "filters"},
		{"lt without a value", property(`{"key":"a","type":"person","operator":"lt"}`), "invalid_value", "filters"},
		{"broken regex", property(`{"key":"a","type":"person","operator":"regex","value":"[a"}`), "invalid_input", "filters"},
		{"look-ahead", property(`{"key":"a","type":"person","operator":"not_regex","value":"a(?=b)"}`), "invalid_input", "filters"},
		{"back-reference", property(`{"key":"a","type":"person","operator":"regex","value":"(a)\\1"}`), "invalid_input", "filters"},
		{"no date", property(`{"key":"a","type":"person","operator":"is_date_before","value":"soon"}`), "invalid_date", "filters"},
		{"relative date too far", property(`{"key":"a","type":"person","operator":"is_date_after","value":"10000d"}`), "invalid_date", "filters"},
		{"no version", property(`{"key":"a","type":"person","operator":"semver_gt","value":"new"}`), "invalid_value", "filters"},
		{"version list", property(`{"key":"a","type":"person","operator":"semver_eq","value":["1.2.3"]}`), "invalid_value", "filters"},
		{"icontains_multi of a text", property(`{"key":"a","type":"person","operator":"icontains_multi","value":"x"}`), "invalid_value", "filters"},
		{"between of one", property(`{"key":"a","type":"person","operator":"between","value":[1]}`), "invalid_value", "filters"},
		{"not_between of texts", property(`{"key":"a","type":"person","operator":"not_between","value":["a","b"]}`), "invalid_value", "filters"},
		{"more than 1000 values", property(`{"key":"a","type":"person","operator":"exact","value":` + values(1001) + `}`), "invalid_input", "filters"},
		{"missing cohort", property(`{"key":"id","type":"cohort","operator":"in","value":98}`), "cohort_does_not_exist", "filters"},
		{"deleted cohort", property(`{"key":"id","type":"cohort","operator":"in","value":2}`), "cohort_does_not_exist", "filters"},
		{"cohort is a word", property(`{"key":"id","type":"cohort","value":"all"}`), "cohort_does_not_exist", "filters"},
		{"cohort without an id", property(`{"key":"id","type":"cohort"}`), "cohort_does_not_exist", "filters"},
		{"cohort with another operator", property(`{"key":"id","type":"cohort","operator":"gt","value":1}`), "invalid_operator", "filters"},
		{"flag with another operator", property(`{"key":"1","type":"flag","operator":"exact","value":true}`), "invalid_input", "filters"},
		{"flag without an operator", property(`{"key":"1","type":"flag","value":true}`), "invalid_input", "filters"},
		{"flag by key", property(`{"key":"taken","type":"flag","operator":"flag_evaluates_to","value":true}`), "invalid_input", "filters"},
		{"flag that is missing", property(`{"key":"77","type":"flag","operator":"flag_evaluates_to","value":true}`), "invalid_input", "filters"},
		{"flag that is deleted", property(`{"key":3,"type":"flag","operator":"flag_evaluates_to","value":true}`), "invalid_input", "filters"},
		{"flag that is disabled", property(`{"key":2,"type":"flag","operator":"flag_evaluates_to","value":true}`), "invalid_input", "filters"},
		{"flag evaluating to a number", property(`{"key":1,"type":"flag","operator":"flag_evaluates_to","value":3}`), "invalid_value", "filters"},
		{"filters too large", property(`{"key":"a","type":"person","operator":"exact","value":"` + strings.Repeat("x", 600<<10) + `"}`), "invalid_input", "filters"},
		{"first error only, in the order of the contract", `{"filters":[],"key":"a b"}`, "not_a_dict", "filters"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.in(t).do("POST", base, c.body).fails(400, c.code, c.attr)
		})
	}
	for _, c := range cases {
		if !strings.Contains(c.body, `"groups":[]`) && strings.Contains(c.body, `"filters":{"`) {
			t.Run("update: "+c.name, func(t *testing.T) {
				h.in(t).patch(1, strings.Replace(c.body, `"key":"new",`, "", 1)).fails(400, c.code, c.attr)
			})
		}
	}
	if f := h.do("GET", path(1), "").flag(200); f.Version != 1 {
		t.Errorf("got version %d after rejected writes, want 1", f.Version)
	}
}

func TestAcceptedFilters(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.create(`{"key":"dep","filters":{"groups":[{}],"multivariate":{"variants":[{"key":"blue","rollout_percentage":100}]},"holdout":{"id":4,"exclusion_percentage":5}}}`)
	h.cohort(`{"name":"people","filters":{"properties":{"type":"OR","values":[{"type":"AND","values":[{"key":"plan","type":"person","operator":"exact","value":["pro"]}]}]}}}`)
	cases := []struct{ name, filters, want string }{
		{"numbers stay as sent", `{"groups":[{"properties":[{"key":"a","type":"person","operator":"gt","value":1.50},{"key":"a","type":"person","operator":"regex","value":7}]}]}`, ""},
		{"numeric text", `{"groups":[{"properties":[{"key":"a","type":"person","operator":"lte","value":"9"}]}]}`, ""},
		{"no type and no operator", `{"groups":[{"properties":[{"key":"a","value":["x",1,null,true]}]}]}`, ""},
		{"aliases become their operator", `{"groups":[{"properties":[{"key":"a","type":"person","operator":"min","value":1},{"key":"a","type":"person","operator":"max","value":2}]}]}`,
			`{"groups":[{"properties":[{"key":"a","type":"person","operator":"gte","value":1},{"key":"a","type":"person","operator":"lte","value":2}]}]}`},
		{"payloads become texts", `{"groups":[{}],"payloads":{"true":{"a": [1, 2.50]}}}`, `{"groups":[{}],"payloads":{"true":"{\"a\":[1,2.50]}"}}`},
		{"payload number", `{"groups":[{}],"payloads":{"true":42}}`, `{"groups":[{}],"payloads":{"true":"42"}}`},
		{"payload text that is JSON", `{"groups":[{}],"payloads":{"true":"\"text\""}}`, ""},
		{"null payload is none", `{"groups":[{}],"payloads":{"true":null}}`, `{"groups":[{}],"payloads":{}}`},
		{"thirds", `{"groups":[{"variant":"b"}],"multivariate":{"variants":[{"key":"a","name":null,"rollout_percentage":33.3},{"key":"b","rollout_percentage":33.3},{"key":"c","rollout_percentage":33.4}]}}`, ""},
		{"no variants", `{"groups":[{"rollout_percentage":null}],"multivariate":{"variants":[]}}`, ""},
		{"group flag", `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"a","type":"group","group_type_index":0,"operator":"exact","value":"x"}]}]}`, ""},
		{"mixed targeting", `{"aggregation_group_type_index":null,"groups":[{"aggregation_group_type_index":1,"properties":[{"key":"a","type":"group","group_type_index":1,"value":"x"}]},{"aggregation_group_type_index":null,"properties":[{"key":"a","type":"person","value":"x"}]}]}`, ""},
		{"cohort", `{"groups":[{"properties":[{"key":"id","type":"cohort","operator":"in","value":1}]}]}`,
			`{"groups":[{"properties":[{"key":"id","type":"cohort","operator":"in","value":1,"cohort_name":"people"}]}]}`},
		{"cohort by text, with the name that an answer had", `{"groups":[{"properties":[{"cohort_name":"old","key":"id","type":"cohort","value":"1"}]}]}`,
			`{"groups":[{"properties":[{"key":"id","type":"cohort","value":"1","cohort_name":"people"}]}]}`},
		{"dependency", `{"groups":[{"properties":[{"key":"1","type":"flag","operator":"flag_evaluates_to","value":"blue"}]}]}`, ""},
		{"dependency on a holdout", `{"groups":[{"properties":[{"key":"1","type":"flag","operator":"flag_evaluates_to","value":"holdout-4"}]}]}`, ""},
		{"dates", `{"groups":[{"properties":[{"key":"a","type":"person","operator":"is_date_before","value":"-30d"},{"key":"a","type":"person","operator":"is_date_after","value":"2024-01-02"}]}]}`, ""},
		{"versions", `{"groups":[{"properties":[{"key":"a","type":"person","operator":"semver_gte","value":"v1.2"},{"key":"a","type":"person","operator":"semver_wildcard","value":"1.2.*"}]}]}`, ""},
		{"ranges and affixes", `{"groups":[{"properties":[{"key":"a","type":"person","operator":"between","value":["1",2]},{"key":"a","type":"person","operator":"not_starts_with","value":"x"}]}]}`, ""},
		{"is_set without a value", `{"groups":[{"properties":[{"key":"a","type":"person","operator":"is_set"}]}]}`, ""},
		{"a name that stands twice: the last value", `{"groups":[{"rollout_percentage":140}],"groups":[{"rollout_percentage":4}]}`, `{"groups":[{"rollout_percentage":4}]}`},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := string(h.in(t).create(fmt.Sprintf(`{"key":"f%d","filters":%s}`, i, c.filters)).Filters)
			want := c.want
			if want == "" {
				want = c.filters
			}
			if got != want {
				t.Errorf("filters\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestErrorsNameTheField(t *testing.T) {
	t.Parallel()
	cases := []struct{ filters, want string }{
		{`{"groups":[{"rollout_percentage":140}]}`, "groups[0].rollout_percentage must be between 0 and 100, got 140"},
		{`{"groups":[{},{"properties":[{"key":"a","operator":"regex","value":"(?<=a)b"}]}]}`, "groups[1].properties[0].value: invalid regex pattern"},
		{`{"groups":[{"properties":[{"key":"a","operator":"regex","value":"(?<=a)b"}]}]}`, "RE2"},
		{`{"groups":[],"multivariate":{"variants":[{"key":"a","rollout_percentage":-1}]}}`, "multivariate.variants[0].rollout_percentage"},
	}
	for _, c := range cases {
		_, err := rules.CheckFilters(json.RawMessage(c.filters), rules.References{}, flags.DefaultManageConfig().Limits())
		if f := fault.From(err); f == nil || !strings.Contains(f.Detail, c.want) {
			t.Errorf("%s: got %v, want %q", c.filters, err, c.want)
		}
	}
}

func TestBehaviouralCohortsAreRejected(t *testing.T) {
	t.Parallel()
	refs := rules.References{Cohorts: map[int64]rules.CohortRef{5: {Name: "buyers", Behavioural: true}}}
	_, err := rules.CheckFilters(json.RawMessage(`{"groups":[{"properties":[{"key":"id","type":"cohort","value":5}]}]}`), refs, flags.DefaultManageConfig().Limits())
	if f := fault.From(err); f == nil || f.Code != "behavioral_cohort_found" || f.Attr != "filters" {
		t.Errorf("got %v", err)
	}
}

// near is a plugin operator whose value is a string.
type near struct{}

func (near) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{Compile: func(value []byte) (match.Compiled, error) {
		if value[0] != '"' {
			return match.Compiled{}, fault.Field("value", "invalid_value", "a place is a text")
		}
		return match.Compiled{Program: match.Program(value)}, nil
	}}, id == "acme/near"
}

func TestPluginOperatorChecksItsValue(t *testing.T) {
	t.Parallel()
	refs := rules.References{Operators: near{}}
	check := func(value string) error {
		_, err := rules.CheckFilters(json.RawMessage(`{"groups":[{"properties":[{"key":"a","operator":"acme/near","value":`+value+`}]}]}`), refs, flags.DefaultManageConfig().Limits())
		return err
	}
	if err := check(`"Oslo"`); err != nil {
		t.Errorf("good value: %v", err)
	}
	if f := fault.From(check(`3`)); f == nil || f.Code != "invalid_value" || !strings.Contains(f.Detail, "a place is a text") {
		t.Errorf("bad value: %v", f)
	}
}

func TestDependencies(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		needs := func(id int64) string {
			return `{"groups":[{"properties":[{"key":"` + itoa(id) + `","type":"flag","operator":"flag_evaluates_to","value":true}]}]}`
		}
		a := h.create(`{"key":"a"}`)
		b := h.create(`{"key":"b","filters":` + needs(a.ID) + `}`)
		c := h.create(`{"key":"c","filters":` + needs(b.ID) + `}`)
		h.patch(a.ID, `{"filters":`+needs(a.ID)+`}`).fails(400, "invalid_input", "filters")
		var e struct{ Detail string }
		h.patch(a.ID, `{"filters":`+needs(c.ID)+`}`).fails(400, "invalid_input", "filters").into(&e)
		if !strings.Contains(e.Detail, "a → c → b → a") {
			t.Errorf("the detail does not name the cycle: %s", e.Detail)
		}
		h.patch(a.ID, `{"active":false}`).fails(400, "invalid_input", "")
		h.patch(a.ID, `{"deleted":true}`).fails(400, "invalid_input", "").into(&e)
		if !strings.Contains(e.Detail, ": b.") {
			t.Errorf("the detail does not name the dependent flag: %s", e.Detail)
		}
		for i := range 6 {
			h.create(fmt.Sprintf(`{"key":"d%d","filters":%s}`, i, needs(a.ID)))
		}
		h.patch(a.ID, `{"deleted":true}`).fails(400, "invalid_input", "").into(&e)
		if !strings.Contains(e.Detail, "b, d0, d1, d2, d3 and 2 more") {
			t.Errorf("the detail does not count further flags: %s", e.Detail)
		}
		h.patch(c.ID, `{"active":false}`).want(200)
		h.patch(b.ID, `{"active":false}`).want(200)
		h.patch(c.ID, `{"active":true}`).fails(400, "invalid_input", "")
		h.patch(b.ID, `{"deleted":true}`).want(200)
		h.patch(c.ID, `{"active":true}`).fails(400, "invalid_input", "")
		h.patch(b.ID, `{"deleted":false,"active":true}`).want(200)
		h.patch(c.ID, `{"active":true}`).want(200)
	})
}

// FuzzCheckFilters compares the write rules with the evaluator: accepted filters
// are JSON, are accepted again unchanged, and the evaluator reads them.
func FuzzCheckFilters(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"groups":[]}`, `{"groups":[{"properties":[{"key":"a","type":"person","operator":"exact","value":["x"]}],"rollout_percentage":33.3,"variant":"b"}],"multivariate":{"variants":[{"key":"b","rollout_percentage":100}]},"payloads":{"b":{"x":1}}}`,
		`{"groups":[{"properties":[{"key":"1","type":"flag","operator":"flag_evaluates_to","value":true}]}]}`,
		`{"groups":[{"properties":[{"key":"id","type":"cohort","value":1,"cohort_name":"x"}]}],"super_groups":[{"properties":[]}],"holdout":{"id":1}}`,
		`{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"\u0001\"\\","type":"group","operator":"regex","value":"^a+$"}]}]}`,
		`{"groups":[{"rollout_percentage":1e-400}],"groups":[{"rollout_percentage":0}],"payloads":{"true":"1"}}`,
		`{"properties":[{"key":"a","value":1}],"holdout_groups":[{"rollout_percentage":10,"variant":"holdout-1"}]}`,
	} {
		f.Add([]byte(seed))
	}
	refs := rules.References{Flags: map[int64]rules.FlagRef{1: {Key: "one", Active: true}}, Cohorts: map[int64]rules.CohortRef{1: {Name: "c"}}}
	limits := flags.DefaultManageConfig().Limits()
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := rules.CheckFilters(raw, refs, limits)
		if err != nil {
			if f := fault.From(err); f == nil || f.Attr != "filters" || f.Kind != fault.Invalid {
				t.Fatalf("%q: error %v is not about filters", raw, err)
			}
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q became %q, which is not JSON", raw, got)
		}
		again, err := rules.CheckFilters(got, refs, limits)
		if err != nil || string(again) != string(got) {
			t.Fatalf("%q became %q, then %q, %v", raw, got, again, err)
		}
		if _, err := filters.Parse(got); err != nil {
			t.Fatalf("%q: accepted, but the evaluator fails: %v", raw, err)
		}
		eval.Compile([]eval.Definition{{ID: 1, Key: "k", Filters: got, Active: true}}, nil, nil, eval.CompileOptions{})
		if !json.Valid(local.Document(eval.ProjectDefinitions{Flags: []eval.Definition{{ID: 1, Key: "k", Filters: got}}}, local.Options{Cohorts: true})) {
			t.Fatalf("%q: the document for local evaluation is not JSON", raw)
		}
	})
}

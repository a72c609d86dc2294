package flags_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// valueOf decides a flag for a person without stored data.
func (h *server) valueOf(key, distinctID string) any {
	h.t.Helper()
	for _, d := range h.snapshots.Set(1).Evaluate(&eval.Request{DistinctID: distinctID}, nil, h.clock()) {
		if d.Key == key {
			return d.Value()
		}
	}
	return nil
}

func TestWritingBackLegacyFiltersChangesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		for i, c := range []struct{ filters, shown, value string }{
			{`{"properties":[],"rollout_percentage":0}`, `{"groups":[{"properties":[],"rollout_percentage":0}]}`, "false"},
			{`{"rollout_percentage":30}`, `{"groups":[{"properties":[],"rollout_percentage":30}]}`, ""},
			{`{"properties":[{"key":"plan","type":"person","value":"pro"}]}`, `{"groups":[{"properties":[{"key":"plan","type":"person","value":"pro"}],"rollout_percentage":null}]}`, "false"},
		} {
			f := h.create(fmt.Sprintf(`{"key":"old%d","filters":%s}`, i, c.filters))
			if string(f.Filters) != c.shown {
				t.Errorf("%s is shown as %s", c.filters, f.Filters)
			}
			before := h.valueOf(f.Key, "u")
			if c.value != "" && fmt.Sprint(before) != c.value {
				t.Errorf("%s decides %v", c.filters, before)
			}
			got := h.patch(f.ID, `{"filters":`+string(f.Filters)+`}`).flag(200)
			if got.Version != 1 || string(got.Filters) != c.shown || h.valueOf(f.Key, "u") != before {
				t.Errorf("writing back %s: version %d, %s, %v", c.filters, got.Version, got.Filters, h.valueOf(f.Key, "u"))
			}
			if got = h.patch(f.ID, `{"filters":{"properties":[],"rollout_percentage":100}}`).flag(200); got.Version != 2 || h.valueOf(f.Key, "u") != true {
				t.Errorf("a write in the oldest form: version %d, %v", got.Version, h.valueOf(f.Key, "u"))
			}
		}
		h.do("POST", "/api/projects/1/feature_flags/", `{"key":"x","filters":{"rollout_percentage":140}}`).fails(400, "invalid_input", "filters")
		f := h.create(`{"key":"none","filters":{"rollout_percentage":0}}`)
		var view struct {
			IsSimpleFlag      bool   `json:"is_simple_flag"`
			RolloutPercentage *int64 `json:"rollout_percentage"`
		}
		h.do("GET", path(f.ID), "").want(200).into(&view)
		if !view.IsSimpleFlag || view.RolloutPercentage == nil || *view.RolloutPercentage != 0 {
			t.Errorf("got %+v", view)
		}
	})
}

func TestFieldsThatChangeEvaluation(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		type fields struct {
			Bucketing string   `json:"bucketing_identifier"`
			Runtime   string   `json:"evaluation_runtime"`
			Contexts  []string `json:"evaluation_contexts"`
			Tags      []string `json:"evaluation_tags"`
		}
		read := func(a answer) string {
			var f fields
			a.into(&f)
			return fmt.Sprint(f)
		}
		a := h.do("POST", "/api/projects/1/feature_flags/", `{"key":"a","bucketing_identifier":"device_id","evaluation_runtime":"Server","evaluation_contexts":[" web ","web","app"]}`).want(201)
		if got := read(a); got != "{device_id server [web app] [web app]}" {
			t.Errorf("created: %s", got)
		}
		if got := read(h.do("GET", path(1), "").want(200)); got != "{device_id server [web app] [web app]}" {
			t.Errorf("read: %s", got)
		}
		var doc struct{ Flags []fields }
		h.do("GET", "/flags/definitions?token=phc_one", "").want(200).into(&doc)
		if got := fmt.Sprint(doc.Flags); got != "[{device_id server [web app] [web app]}]" {
			t.Errorf("exported: %s", got)
		}
		h.patch(1, `{"ensure_experience_continuity":true}`).fails(400, "invalid_input", "")
		if got := read(h.patch(1, `{"bucketing_identifier":null,"evaluation_runtime":null,"evaluation_tags":[],"ensure_experience_continuity":true}`).want(200)); got != "{distinct_id all [] []}" {
			t.Errorf("changed: %s", got)
		}
		if got := read(h.do("POST", path(1)+"rollback/", `{"version":1}`).want(200)); got != "{device_id server [web app] [web app]}" {
			t.Errorf("rolled back: %s", got)
		}
		activity := string(h.do("GET", path(1)+"activity/", "").want(200).body)
		for _, field := range []string{"bucketing_identifier", "evaluation_runtime", "evaluation_contexts"} {
			if strings.Count(activity, `"field":"`+field+`"`) != 2 {
				t.Errorf("activity does not have the changes of %s: %s", field, activity)
			}
		}
		for body, field := range map[string]string{
			`{"bucketing_identifier":"ip"}`: "bucketing_identifier", `{"evaluation_runtime":"edge"}`: "evaluation_runtime",
			`{"evaluation_contexts":[""]}`: "evaluation_contexts", `{"evaluation_contexts":"web"}`: "evaluation_contexts", `{"evaluation_environments":[[]]}`: "evaluation_environments",
		} {
			if a := h.patch(1, body); a.status != 400 || !strings.Contains(string(a.body), `"attr":"`+field) {
				t.Errorf("%s: %d %s", body, a.status, a.body)
			}
		}
	})
}

func TestMembersOfFiltersAreChecked(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.create(`{"key":"multi","filters":{"groups":[{}],"multivariate":{"variants":[{"key":"blue","rollout_percentage":100}]}}}`)
	depends := func(value string) string {
		return `{"groups":[{"properties":[{"key":"1","type":"flag","operator":"flag_evaluates_to","value":` + value + `}]}]}`
	}
	for _, filters := range []string{
		`{"groups":[{}],"early_exit":"x"}`, `{"groups":[{}],"feature_enrollment":1}`, `{"groups":[{}],"holdout":{"id":1,"exclusion_percentage":110}}`,
		`{"groups":[{}],"holdout":{"id":1,"exclusion_percentage":"5"}}`, `{"groups":[{}],"holdout":7}`,
	} {
		h.do("POST", "/api/projects/1/feature_flags/", `{"key":"x","filters":`+filters+`}`).fails(400, "invalid_input", "filters")
	}
	h.do("POST", "/api/projects/1/feature_flags/", `{"key":"x","filters":`+depends(`"red"`)+`}`).fails(400, "invalid_value", "filters")
	h.do("POST", "/api/projects/1/feature_flags/", `{"key":"x","filters":{"groups":[{"properties":[{"key":"a","type":"person","value":"\ud800"}]}]}}`).fails(400, "surrogate_characters_not_allowed", "filters")
	h.do("POST", cohortsPath, `{"name":"x","filters":{"properties":{"type":"AND","values":[{"key":"a","type":"person","value":"\udfff"}]}}}`).fails(400, "surrogate_characters_not_allowed", "filters")
	h.create(`{"key":"ok","filters":` + depends(`"blue"`) + `}`)
	h.create(`{"key":"emoji","filters":{"groups":[{"properties":[{"key":"a","type":"person","value":"\ud83d\ude00"}]}],"early_exit":true,"holdout":{"id":1,"exclusion_percentage":100}}}`)
}

func TestCohortWordsAreStoredInUpperCase(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	var c struct{ Filters json.RawMessage }
	h.do("POST", cohortsPath, `{"name":"x","filters":{"properties":{"type":"and","values":[{"type":"or","values":[{"key":"a","type":"person","value":"1"}]}]}}}`).want(201).into(&c)
	if !strings.Contains(string(c.Filters), `"type":"AND"`) || !strings.Contains(string(c.Filters), `"type":"OR"`) {
		t.Errorf("got %s", c.Filters)
	}
}

func TestBlastRadiusOfConditions(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.stored.persons = append(h.stored.persons, person(1, `{}`, "x1", "x1-alias"), person(2, `{}`, "x2"))
	radius := func(body string) string {
		var b struct {
			Affected int64 `json:"users_affected"`
			Total    int64 `json:"total_users"`
		}
		h.do("POST", "/api/projects/1/feature_flags/user_blast_radius/", body).want(200).into(&b)
		return fmt.Sprint(b)
	}
	if got := radius(`{"condition":{"properties":[{"key":"distinct_id","type":"person","value":"x1-alias"}]}}`); got != "{1 2}" {
		t.Errorf("the second id of a person: %s", got)
	}
	if got := radius(`{"condition":{"properties":[],"aggregation_group_type_index":0}}`); got != fmt.Sprintf("{%d %d}", len(h.stored.groups), len(h.stored.groups)) {
		t.Errorf("a set of groups: %s", got)
	}
	h.do("POST", "/api/projects/1/feature_flags/user_blast_radius/", `{"condition":{"properties":[],"aggregation_group_type_index":0},"group_type_index":1}`).fails(400, "invalid_input", "")
	h.do("POST", "/api/projects/1/feature_flags/user_blast_radius/", `{"condition":{"aggregation_group_type_index":"x"}}`).fails(400, "invalid_input", "")
}

package flags_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/local"
)

func TestLocalEvaluationPaths(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.create(`{"key":"on","name":"N","filters":{"groups":[{"properties":[],"rollout_percentage":45.0}],"payloads":{"true":{"a":1}}}}`)
		h.create(`{"key":"off","active":false,"ensure_experience_continuity":true,"filters":{}}`)
		gone := h.create(`{"key":"gone"}`)
		h.patch(gone.ID, `{"deleted":true}`).want(200)
		const scope = `"bucketing_identifier":"distinct_id","evaluation_runtime":"all","evaluation_contexts":[],"evaluation_tags":[],"has_experiment":false`
		want := `{"flags":[` +
			`{"id":1,"team_id":1,"name":"N","key":"on","filters":{"groups":[{"properties":[],"rollout_percentage":45}],"payloads":{"true":"{\"a\":1}"}},"deleted":false,"active":true,"ensure_experience_continuity":false,"has_encrypted_payloads":false,"version":1,` + scope + `},` +
			`{"id":2,"team_id":1,"name":"","key":"off","filters":{"groups":[{"properties":[],"rollout_percentage":null}]},"deleted":false,"active":false,"ensure_experience_continuity":true,"has_encrypted_payloads":false,"version":1,` + scope + `}],` +
			`"group_type_mapping":{"0":"company","1":"project"},"cohorts":{},"property_matching_version":2}`
		for _, p := range []string{
			"/api/projects/1/feature_flags/local_evaluation", "/api/projects/@current/feature_flags/local_evaluation/?send_cohorts",
			"/api/feature_flag/local_evaluation?token=phc_one&send_cohorts", "/api/feature_flag/local_evaluation/?send_cohorts=true&token=phc_one",
			"/flags/definitions?token=phc_one&send_cohorts", "/flags/definitions/",
		} {
			for _, key := range []string{"phx_ada", "phx_read"} {
				if got := string(h.as(key).do("GET", p, "").want(200).body); got != want {
					t.Errorf("GET %s\n got %s\nwant %s", p, got, want)
				}
			}
		}
		var other struct{ Flags []json.RawMessage }
		h.do("GET", "/flags/definitions?token=phc_two", "").want(200).into(&other)
		if len(other.Flags) != 0 {
			t.Errorf("another project's flags: %s", other.Flags)
		}
		h.do("GET", "/flags/definitions?token=phc_wrong", "").want(401)
		for _, p := range []string{"/flags/definitions/?send_cohorts", "/api/feature_flag/local_evaluation/", "/api/projects/@current/feature_flags/local_evaluation"} {
			named := func(key string) answer { return h.do("GET", p, "", "X-PostHog-Project-Api-Key", key) }
			other.Flags = nil
			named("phc_two").want(200).into(&other)
			if len(other.Flags) != 0 {
				t.Errorf("GET %s with the project key of another project in a header: its answer has the flags %s", p, other.Flags)
			}
			named("phc_wrong").want(401)
			h.as("phx_one").do("GET", p, "", "X-PostHog-Project-Api-Key", "phc_two").want(403)
		}
		h.do("GET", "/flags/definitions?token=phc_two", "", "X-PostHog-Project-Api-Key", "phc_one").want(200).into(&other)
		if len(other.Flags) != 0 {
			t.Errorf("the header wins over the query: %s", other.Flags)
		}
		h.as("").do("GET", "/flags/definitions?token=phc_one", "").want(401)
	})
}

func TestLocalEvaluationETag(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.create(`{"key":"a"}`)
		const p = "/flags/definitions?token=phc_one&send_cohorts"
		first := h.do("GET", p, "").want(200)
		tag := first.header.Get("ETag")
		if !regexp.MustCompile(`^W/"[A-Za-z0-9_-]{16}"$`).MatchString(tag) || first.header.Get("Cache-Control") != "private, must-revalidate" {
			t.Errorf("tag %q, cache control %q", tag, first.header.Get("Cache-Control"))
		}
		bare := strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
		for _, sent := range []string{tag, `"` + bare + `"`, bare, `"x", ` + tag, "*"} {
			if a := h.do("GET", p, "", "If-None-Match", sent).want(304); len(a.body) != 0 || a.header.Get("ETag") != tag {
				t.Errorf("If-None-Match %s: %q, tag %q", sent, a.body, a.header.Get("ETag"))
			}
		}
		h.do("GET", p, "", "If-None-Match", `W/"other"`).want(200)
		h.patch(f.ID, `{"active":false}`).want(200)
		if again := h.do("GET", p, "", "If-None-Match", tag).want(200); again.header.Get("ETag") == tag {
			t.Error("another document has the same tag")
		}
	})
}

func TestCohortsInLocalEvaluation(t *testing.T) {
	t.Parallel()
	leaf := func(key string) string { return `{"key":"` + key + `","type":"person","operator":"exact","value":"x"}` }
	and := func(values ...string) string { return `{"type":"AND","values":[` + strings.Join(values, ",") + `]}` }
	or := func(values ...string) string { return `{"type":"OR","values":[` + strings.Join(values, ",") + `]}` }
	set := func(properties ...string) string {
		return `{"properties":[` + strings.Join(properties, ",") + `],"rollout_percentage":30}`
	}
	const cohort = `{"key":"id","type":"cohort","value":1,"operator":"in"}`
	one := `{"groups":[` + set(cohort) + `]}`
	cases := []struct{ name, tree, filters, want string }{
		{"a single property", or(and(leaf("a"))), one, `{"groups":[` + set(leaf("a")) + `]}`},
		{"an AND is one set", and(leaf("a"), leaf("b")), one, `{"groups":[` + set(leaf("a"), leaf("b")) + `]}`},
		{"an OR is several sets", or(leaf("a"), leaf("b")), one, `{"groups":[` + set(leaf("a")) + `,` + set(leaf("b")) + `]}`},
		{"an OR of ANDs", or(and(leaf("a"), leaf("b")), and(leaf("c"))), one, `{"groups":[` + set(leaf("a"), leaf("b")) + `,` + set(leaf("c")) + `]}`},
		{"other sets stay in their place", and(leaf("a")), `{"groups":[` + set(leaf("z")) + `,` + set(cohort) + `,` + set() + `]}`,
			`{"groups":[` + set(leaf("z")) + `,` + set(leaf("a")) + `,` + set() + `]}`},
		{"an AND of ORs cannot be said", and(or(leaf("a"), leaf("b")), leaf("c")), one, one},
		{"negation cannot be said", and(`{"key":"a","type":"person","value":"x","negation":true}`), one, one},
		{"a nested cohort cannot be said", and(`{"key":"id","type":"cohort","value":2}`), one, one},
		{"everybody cannot be said", and(), one, one},
		{"not alone in its set", and(leaf("a")), `{"groups":[` + set(cohort, leaf("z")) + `]}`, ``},
		{"twice", and(leaf("a")), `{"groups":[` + set(cohort) + `,` + set(cohort) + `]}`, ``},
		{"not_in", and(leaf("a")), `{"groups":[` + set(`{"key":"id","type":"cohort","value":1,"operator":"not_in"}`) + `]}`, ``},
		{"an override", and(leaf("a")), `{"groups":[{"properties":[` + cohort + `],"variant":"v"}]}`, ``},
		{"no such cohort", and(leaf("a")), `{"groups":[` + set(`{"key":"id","type":"cohort","value":9}`) + `]}`, ``},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stored := eval.ProjectDefinitions{
				Flags:   []eval.Definition{{ID: 1, Key: "f", Filters: json.RawMessage(c.filters), Active: true}},
				Cohorts: []eval.CohortDefinition{{ID: 1, Filters: json.RawMessage(`{"properties":` + c.tree + `}`)}},
			}
			want := c.want
			if want == "" {
				want = c.filters
			}
			plain, full := localOf(t, stored, false), localOf(t, stored, true)
			if got := string(plain.Flags[0].Filters); got != want || len(plain.Cohorts) != 0 {
				t.Errorf("without cohorts\n got %s\nwant %s", got, want)
			}
			if got := string(full.Flags[0].Filters); got != c.filters {
				t.Errorf("with cohorts\n got %s\nwant %s", got, c.filters)
			}
			if tree := string(full.Cohorts["1"]); tree != c.tree && c.name != "no such cohort" {
				t.Errorf("tree %s", tree)
			}
		})
	}
}

type localAnswer struct {
	Flags []struct {
		Key     string
		Filters json.RawMessage
	}
	Cohorts map[string]json.RawMessage
}

func localOf(t *testing.T, stored eval.ProjectDefinitions, cohorts bool) localAnswer {
	t.Helper()
	var l localAnswer
	if err := json.Unmarshal(local.Document(stored, local.Options{Cohorts: cohorts, Client: local.Client{Current: true, GroupDependencies: true}}), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNestedCohortsInLocalEvaluation(t *testing.T) {
	t.Parallel()
	nest := func(id int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"properties":{"type":"AND","values":[{"key":"id","type":"cohort","value":%d}]}}`, id))
	}
	stored := eval.ProjectDefinitions{
		Flags:   []eval.Definition{{ID: 1, Key: "f", Filters: json.RawMessage(`{"groups":[{"properties":[{"key":"id","type":"cohort","value":"1"}]}]}`)}},
		Cohorts: []eval.CohortDefinition{{ID: 1, Filters: nest(2)}, {ID: 2, Filters: nest(3)}, {ID: 3, Static: true}, {ID: 4, Filters: nest(1)}},
	}
	if got := localOf(t, stored, true).Cohorts; len(got) != 2 || got["1"] == nil || got["2"] == nil {
		t.Errorf("cohorts %v", got)
	}
}

func TestDependenciesInLocalEvaluation(t *testing.T) {
	t.Parallel()
	needs := func(ids ...int64) json.RawMessage {
		var list []string
		for _, id := range ids {
			list = append(list, `{"key":"`+itoa(id)+`","type":"flag","operator":"flag_evaluates_to","value":true}`)
		}
		return json.RawMessage(`{"groups":[{"properties":[` + strings.Join(list, ",") + `]}]}`)
	}
	stored := eval.ProjectDefinitions{Flags: []eval.Definition{
		{ID: 1, Key: "base", Filters: json.RawMessage(`{}`)}, {ID: 2, Key: "mid", Filters: needs(1)}, {ID: 3, Key: "top", Filters: needs(2, 1)},
		{ID: 4, Key: "ring", Filters: needs(5)}, {ID: 5, Key: "ring2", Filters: needs(4)}, {ID: 6, Key: "lost", Filters: needs(77)},
	}}
	got := localOf(t, stored, true)
	wants := map[string]string{
		"mid":  `{"groups":[{"properties":[{"key":"base","type":"flag","operator":"flag_evaluates_to","value":true,"dependency_chain":["base"]}]}]}`,
		"top":  `{"groups":[{"properties":[{"key":"mid","type":"flag","operator":"flag_evaluates_to","value":true,"dependency_chain":["base","mid"]},{"key":"base","type":"flag","operator":"flag_evaluates_to","value":true,"dependency_chain":["base"]}]}]}`,
		"ring": `{"groups":[{"properties":[{"key":"ring2","type":"flag","operator":"flag_evaluates_to","value":true,"dependency_chain":[]}]}]}`,
		"lost": `{"groups":[{"properties":[{"key":"77","type":"flag","operator":"flag_evaluates_to","value":true,"dependency_chain":[]}]}]}`,
	}
	for _, f := range got.Flags {
		if want, ok := wants[f.Key]; ok && string(f.Filters) != want {
			t.Errorf("%s\n got %s\nwant %s", f.Key, f.Filters, want)
		}
	}
}

func TestRemoteConfig(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.create(`{"key":"conf","filters":{"groups":[{}],"payloads":{"true":{"color":"blue","n":7}}}}`)
		h.create(`{"key":"plain"}`)
		h.create(`{"key":"off","active":false,"filters":{"groups":[{}],"payloads":{"true":"1"}}}`)
		for p, want := range map[string]string{
			"/api/projects/@current/feature_flags/conf/remote_config/":              `"{\"color\":\"blue\",\"n\":7}"`,
			"/api/projects/@current/feature_flags/conf/remote_config?token=phc_one": `"{\"color\":\"blue\",\"n\":7}"`,
			"/api/projects/1/feature_flags/1/remote_config/":                        `"{\"color\":\"blue\",\"n\":7}"`,
			"/api/projects/@current/feature_flags/plain/remote_config/":             `null`,
			"/api/projects/@current/feature_flags/off/remote_config/":               `null`,
		} {
			if got := string(h.as("phx_read").do("GET", p, "").want(200).body); got != want {
				t.Errorf("GET %s: %s, want %s", p, got, want)
			}
		}
		h.do("GET", "/api/projects/@current/feature_flags/nope/remote_config/", "").fails(404, "not_found", "")
		h.do("GET", "/api/projects/@current/feature_flags/conf/remote_config?token=phc_two", "").fails(404, "not_found", "")
	})
}

func BenchmarkLocalEvaluationOf100Flags(b *testing.B) {
	var stored eval.ProjectDefinitions
	for i := range 100 {
		stored.Flags = append(stored.Flags, eval.Definition{ID: int64(i + 1), Key: fmt.Sprintf("flag-%d", i), Active: true,
			Filters: json.RawMessage(`{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":["pro"]}],"rollout_percentage":50}]}`)})
	}
	for b.Loop() {
		local.Document(stored, local.Options{Cohorts: true})
	}
}

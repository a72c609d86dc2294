package local_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/flags/local"
)

var (
	current = local.Client{Current: true, GroupDependencies: true}
	old     = local.Client{}
)

// exported returns the filters of the flag with the given definition for a client.
func exported(t *testing.T, client local.Client, d eval.Definition) string {
	t.Helper()
	stored := eval.ProjectDefinitions{Flags: []eval.Definition{d}, GroupTypes: map[string]int{"company": 0}}
	var doc struct {
		Flags []struct{ Filters json.RawMessage }
	}
	if err := json.Unmarshal(local.Document(stored, local.Options{Cohorts: true, Client: client}), &doc); err != nil {
		t.Fatal(err)
	}
	return string(doc.Flags[0].Filters)
}

func TestFlagsThatClientsDecideDifferentlyAskTheServer(t *testing.T) {
	t.Parallel()
	const everyone = `"groups":[` + flagstest.Everyone + `]`
	two := `"groups":[` + flagstest.NoOne + `,` + flagstest.Everyone + `]`
	byDevice := flagstest.Define(1, "f", `{`+everyone+`}`)
	byDevice.ByDevice = true
	for _, c := range []struct {
		name             string
		flag             eval.Definition
		old, currentAsks bool
	}{
		{"a plain flag", flagstest.Define(1, "f", `{`+everyone+`}`), false, false},
		{"super groups", flagstest.Define(1, "f", `{`+everyone+`,"super_groups":[{"properties":[{"key":"$feature_enrollment/f","type":"person","value":["true"]}]}]}`), true, true},
		{"enrolment", flagstest.Define(1, "f", `{`+everyone+`,"feature_enrollment":true}`), true, true},
		{"no enrolment", flagstest.Define(1, "f", `{`+everyone+`,"feature_enrollment":false,"super_groups":[]}`), false, false},
		{"a holdout", flagstest.Define(1, "f", `{`+everyone+`,"holdout":{"id":1,"exclusion_percentage":10}}`), true, false},
		{"an older holdout", flagstest.Define(1, "f", `{`+everyone+`,"holdout_groups":[{"properties":[],"rollout_percentage":10,"variant":"holdout-9"}]}`), true, false},
		{"early exit", flagstest.Define(1, "f", `{`+two+`,"early_exit":true}`), true, false},
		{"early exit of one set", flagstest.Define(1, "f", `{`+everyone+`,"early_exit":true}`), false, false},
		{"a set of groups", flagstest.Define(1, "f", `{"groups":[{"properties":[],"aggregation_group_type_index":0}]}`), true, false},
		{"a set of persons in a flag of groups", flagstest.Define(1, "f", `{"aggregation_group_type_index":0,"groups":[{"properties":[],"aggregation_group_type_index":null}]}`), true, true},
		{"not in a cohort", flagstest.Define(1, "f", flagstest.InCohort("1", "not_in")), true, false},
		{"bucketing by device", byDevice, true, false},
	} {
		for client, want := range map[local.Client]bool{old: c.old, current: c.currentAsks} {
			got := exported(t, client, c.flag)
			if asks := strings.Contains(got, `"remote_only":true`); asks != want {
				t.Errorf("%s for %+v: %s", c.name, client, got)
			}
			if strings.Contains(got, "super_groups") && want || strings.Contains(got, "holdout_groups") {
				t.Errorf("%s for %+v keeps what the client would misread: %s", c.name, client, got)
			}
		}
	}
	if got := exported(t, current, flagstest.Define(1, "f", `{`+everyone+`,"holdout_groups":[{"properties":[],"rollout_percentage":10,"variant":"holdout-9"}]}`)); !strings.Contains(got, `"holdout":{"id":9,"exclusion_percentage":10}`) {
		t.Errorf("an older holdout: %s", got)
	}
}

func TestLegacyRolloutIsExported(t *testing.T) {
	t.Parallel()
	if got := exported(t, old, flagstest.Define(1, "f", `{"properties":[],"rollout_percentage":30.0,"payloads":{}}`)); got != `{"payloads":{},"groups":[{"properties":[],"rollout_percentage":30}]}` {
		t.Error(got)
	}
}

func TestDatesAreExportedAsInstants(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"2024-01-01"`: `"2024-01-01T00:00:00Z"`, `"2024-01-01 12:30"`: `"2024-01-01T12:30:00Z"`, `"2024"`: `"2024-01-01T00:00:00Z"`, `"2024-05"`: `"2024-05-01T00:00:00Z"`,
		`1704067200`: `"2024-01-01T00:00:00Z"`, `"1704067200"`: `"2024-01-01T00:00:00Z"`, `"2024-01-01T09:00:00+09:00"`: `"2024-01-01T00:00:00Z"`,
		`"2024-01-01T00:00:00.25Z"`: `"2024-01-01T00:00:00.250000Z"`, `"-30d"`: `"-30d"`, `"1y"`: `"1y"`, `"soon"`: `"soon"`,
	} {
		filters := `{"groups":[{"properties":[{"key":"d","operator":"is_date_after","value":` + value + `}]}]}`
		if got := exported(t, old, flagstest.Define(1, "f", filters)); !strings.Contains(got, `"value":`+want) {
			t.Errorf("%s: %s", value, got)
		}
	}
	stored := eval.ProjectDefinitions{
		Flags:   []eval.Definition{flagstest.Define(1, "f", flagstest.InCohort("1", "in"))},
		Cohorts: []eval.CohortDefinition{{ID: 1, Filters: json.RawMessage(`{"properties":{"type":"and","values":[{"type":"or","values":[{"key":"d","type":"person","operator":"is_date_before","value":"2024"}]}]}}`)}},
	}
	if doc := string(local.Document(stored, local.Options{Cohorts: true})); !strings.Contains(doc, `"1":{"type":"AND","values":[{"type":"OR","values":[{"key":"d","type":"person","operator":"is_date_before","value":"2024-01-01T00:00:00Z"}]}]}`) {
		t.Error(doc)
	}
}

// TestUndecidedSetsOfVariants has flags whose first set a client cannot decide: it
// would take the variant of the next one.
func TestUndecidedSetsOfVariants(t *testing.T) {
	t.Parallel()
	flag := func(property, more string) eval.Definition {
		return flagstest.Define(9, "f", `{"groups":[{"properties":[`+property+`],"variant":"blue"},`+flagstest.Everyone+`]`+more+`}`)
	}
	const (
		dependency = `{"key":"1","type":"flag","operator":"flag_evaluates_to","value":true}`
		plugin     = `{"key":"ip","operator":"cidr/contains","value":"10.0.0.0/8"}`
		cohort     = `{"key":"id","type":"cohort","value":3}`
	)
	for _, c := range []struct {
		name                 string
		first                eval.Definition
		flag                 eval.Definition
		currentAsks, oldAsks bool
	}{
		{"a dependency that asks", flagstest.Define(1, "first", `{"groups":[`+flagstest.Everyone+`],"feature_enrollment":true}`), flag(dependency, ","+flagstest.Variants), true, true},
		{"a dependency that is decided", flagstest.Define(1, "first", `{"groups":[`+flagstest.Everyone+`]}`), flag(dependency, ","+flagstest.Variants), false, false},
		{"a missing dependency", flagstest.Define(2, "other", `{}`), flag(dependency, ","+flagstest.Variants), true, true},
		{"a boolean flag", flagstest.Define(2, "other", `{}`), flag(dependency, ""), false, false},
		{"early exit", flagstest.Define(2, "other", `{}`), flag(dependency, `,"early_exit":true`), true, true},
		{"an operator of a plugin", flagstest.Define(2, "other", `{}`), flag(plugin, ","+flagstest.Variants), true, true},
		{"a static cohort", flagstest.Define(2, "other", `{}`), flag(cohort, ","+flagstest.Variants), false, true},
	} {
		for client, want := range map[local.Client]bool{current: c.currentAsks, old: c.oldAsks} {
			stored := eval.ProjectDefinitions{Flags: []eval.Definition{c.first, c.flag}, Cohorts: []eval.CohortDefinition{{ID: 3, Static: true}}}
			doc := string(local.Document(stored, local.Options{Cohorts: true, Client: client}))
			if got := strings.Contains(doc[strings.Index(doc, `"key":"f"`):], "$server_evaluation"); got != want {
				t.Errorf("%s for %+v: %s", c.name, client, doc)
			}
		}
	}
}

func TestDependenciesOnFlagsOfGroups(t *testing.T) {
	t.Parallel()
	stored := eval.ProjectDefinitions{GroupTypes: map[string]int{"company": 0}, Flags: []eval.Definition{
		flagstest.Define(1, "company", `{"aggregation_group_type_index":0,"groups":[`+flagstest.Everyone+`]}`), flagstest.Define(2, "f", flagstest.DependsOn("1", "true")),
	}}
	for client, want := range map[local.Client]string{{Current: true}: `"dependency_chain":[]`, current: `"dependency_chain":["company"]`} {
		if doc := string(local.Document(stored, local.Options{Client: client})); !strings.Contains(doc, want) {
			t.Errorf("%+v: %s", client, doc)
		}
	}
}

func TestClientOf(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]local.Client{
		"posthog-node/5.70.0": current, "posthog-node/5.71.2": current, "posthog-node/5.70.0 (edge)": current, "posthog-node/5.69.9": old, "posthog-node/4.10.2": old,
		"posthog-python/7.91.1": {Current: true}, "posthog-python/6.9.0": old, "posthog-go/1.23.1": old, "": old, "posthog-node": old, "posthog-node/6.0.0-beta.1": old, "posthog-node/x.y.z": old,
	} {
		if got := local.ClientOf(agent); got != want {
			t.Errorf("%q: %+v", agent, got)
		}
	}
}

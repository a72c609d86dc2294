package match_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

var now = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

// ask compiles a filter leniently and matches one property text; "" is an absent
// property.
func ask(t testing.TB, operator, filter, property string) match.Result {
	t.Helper()
	spec := match.Spec{Key: "p", Operator: operator}
	if filter != "" {
		spec.Value = []byte(filter)
	}
	f, err := match.Compile(spec, match.Options{})
	if err != nil {
		t.Fatalf("compile %s %s: %v", operator, filter, err)
	}
	var v match.Value
	if property != "" {
		if v, err = match.Parse([]byte(property)); err != nil {
			t.Fatalf("parse %s: %v", property, err)
		}
	}
	return f.Match(&v, &match.Env{Now: now})
}

// TestOperatorMatrix matches every operator with every kind of property. The
// columns are a property meant to pass, one meant to fail, missing, null, the
// number 5, true, and the list ["alpha","beta"].
func TestOperatorMatrix(t *testing.T) {
	t.Parallel()
	const T, F = match.True, match.False
	rows := []struct {
		operator, filter, yes, no string
		want                      [7]match.Result
	}{
		{"exact", `"Alpha"`, `"aLPHA"`, `"beta"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"exact", `["Alpha",5,true,null]`, `"alpha"`, `"beta"`, [7]match.Result{T, F, F, T, T, T, F}},
		{"exact", `"5"`, `"5"`, `"5.0"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"exact", `true`, `"TRUE"`, `"banana"`, [7]match.Result{T, F, F, F, F, T, F}},
		{"exact", `"false"`, `false`, `"banana"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"exact", `[]`, `"True"`, `"x"`, [7]match.Result{T, F, F, F, F, T, F}},
		{"exact", `["[\"alpha\",\"beta\"]"]`, `["alpha", "beta"]`, `["beta"]`, [7]match.Result{T, F, F, F, F, F, T}},
		{"", `"alpha"`, `"alpha"`, `"beta"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"is_not", `"alpha"`, `"beta"`, `"ALPHA"`, [7]match.Result{T, F, T, T, T, T, T}},
		{"is_not", `["alpha",5,true,null]`, `"beta"`, `"ALPHA"`, [7]match.Result{T, F, T, F, F, F, T}},
		{"is_set", `"is_set"`, `"x"`, ``, [7]match.Result{T, F, F, T, T, T, T}},
		{"is_not_set", `"is_not_set"`, ``, `"x"`, [7]match.Result{T, F, T, F, F, F, F}},
		{"icontains", `"LPH"`, `"alpha"`, `"beta"`, [7]match.Result{T, F, F, F, F, F, T}},
		{"icontains", `5`, `"1520"`, `"beta"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"icontains", `"ul"`, `"full"`, `"beta"`, [7]match.Result{T, F, F, T, F, F, F}},
		{"not_icontains", `"LPH"`, `"beta"`, `"alpha"`, [7]match.Result{T, F, T, T, T, T, F}},
		{"icontains_multi", `["zzz","LPH"]`, `"alpha"`, `"beta"`, [7]match.Result{T, F, F, F, F, F, T}},
		{"icontains_multi", `"LPH"`, `"alpha"`, `"beta"`, [7]match.Result{T, F, F, F, F, F, T}},
		{"not_icontains_multi", `["zzz","LPH"]`, `"beta"`, `"alpha"`, [7]match.Result{T, F, T, T, T, T, F}},
		{"starts_with", `"ALP"`, `"alpha"`, `"xalpha"`, [7]match.Result{T, F, F, F, F, F, T}},
		{"not_starts_with", `"ALP"`, `"xalpha"`, `"alpha"`, [7]match.Result{T, F, T, T, T, T, F}},
		{"ends_with", `"ETA"`, `"beta"`, `"betas"`, [7]match.Result{T, F, F, F, F, F, T}},
		{"not_ends_with", `"ETA"`, `"betas"`, `"beta"`, [7]match.Result{T, F, T, T, T, T, F}},
		{"regex", `"^a.*a$"`, `"alpha"`, `"Alpha"`, [7]match.Result{T, F, F, F, F, F, T}},
		{"regex", `"^(5|null|true)$"`, `"5"`, `"55"`, [7]match.Result{T, F, F, T, T, T, F}},
		{"not_regex", `"^a.*a$"`, `"Alpha"`, `"alpha"`, [7]match.Result{T, F, T, T, T, T, F}},
		{"regex", `"(?=a)"`, `"a"`, `"a"`, [7]match.Result{F, F, F, F, F, F, F}},
		{"not_regex", `"("`, `"a"`, `"a"`, [7]match.Result{F, F, F, F, F, F, F}},
		{"gt", `"4"`, `"10"`, `"3"`, [7]match.Result{T, F, F, F, T, T, F}},
		{"gt", `5`, `5.1`, `5`, [7]match.Result{T, F, F, F, F, T, F}},
		{"gte", `5`, `"5"`, `4.9`, [7]match.Result{T, F, F, F, T, T, F}},
		{"min", `5`, `"5"`, `4.9`, [7]match.Result{T, F, F, F, T, T, F}},
		{"lt", `"5"`, `"4.5"`, `5`, [7]match.Result{T, F, F, F, F, F, F}},
		{"lt", `"m"`, `"alpha"`, `"zeta"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"lte", `5`, `5`, `6`, [7]match.Result{T, F, F, F, T, F, F}},
		{"max", `5`, `5`, `6`, [7]match.Result{T, F, F, F, T, F, F}},
		{"gt", `[1]`, `2`, `0`, [7]match.Result{F, F, F, F, F, F, F}},
		{"between", `[4,"6"]`, `6`, `6.01`, [7]match.Result{T, F, F, F, T, F, F}},
		{"not_between", `[4,6]`, `"3.9"`, `4`, [7]match.Result{T, F, T, F, F, F, F}},
		{"between", `[4]`, `4`, `4`, [7]match.Result{F, F, F, F, F, F, F}},
		{"is_date_before", `"2024-01-01"`, `"2023-12-31T23:59:59Z"`, `"2024-01-01"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"is_date_after", `"2024-01-01T02:00:00+02:00"`, `"2024-01-01 00:00:01"`, `"2024-01-01"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"is_date_exact", `"2024-01-01T02:00:00+02:00"`, `"2024-01-01"`, `"2024-01-02"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"is_date_after", `"-30d"`, `"2026-03-20"`, `"2026-03-01T11:59:59Z"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"is_date_before", `"soon"`, `"2024-01-01"`, `"2024-01-01"`, [7]match.Result{F, F, F, F, F, F, F}},
		{"semver_eq", `"v1.2"`, `" 1.2.0-rc1+b "`, `"1.2.1"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"semver_neq", `"1.2.3"`, `"1.2.4"`, `"v1.2.3.9"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"semver_gt", `"4.9"`, `"4.10"`, `"4.9.0"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"semver_gte", `"5"`, `"5.0.0"`, `"4.9.9"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"semver_lt", `"5.0.1"`, `"5.0.0-beta"`, `"5.0.1"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"semver_lte", `"5"`, `"5"`, `"5.0.1"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"semver_tilde", `"1.2.3"`, `"1.2.9"`, `"1.3.0"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"semver_caret", `"1.2.3"`, `"1.9.0"`, `"2.0.0"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"semver_caret", `"0.2.3"`, `"0.2.9"`, `"0.3.0"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"semver_caret", `"0.0.3"`, `"0.0.3"`, `"0.0.4"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"semver_wildcard", `"1.2.*"`, `"1.2.99"`, `"1.3"`, [7]match.Result{T, F, F, F, F, F, F}},
		{"semver_wildcard", `"5.*"`, `"5.99"`, `"6"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"semver_wildcard", `"*"`, `"0"`, `"x"`, [7]match.Result{T, F, F, F, T, F, F}},
		{"semver_gt", `"one"`, `"2"`, `"2"`, [7]match.Result{F, F, F, F, F, F, F}},
	}
	seen := map[string]bool{}
	for _, r := range rows {
		name, _ := match.Canonical(r.operator)
		seen[name] = true
		properties := [7]string{r.yes, r.no, "", "null", "5", "true", `["alpha","beta"]`}
		columns := [7]string{"match", "mismatch", "missing", "null", "number", "bool", "array"}
		for i, property := range properties {
			t.Run(fmt.Sprintf("%s %s/%s", r.operator, r.filter, columns[i]), func(t *testing.T) {
				if got := ask(t, r.operator, r.filter, property); got != r.want[i] {
					t.Errorf("%s %s on %q: got %s, want %s", r.operator, r.filter, property, got, r.want[i])
				}
			})
		}
	}
	for _, name := range match.Operators() {
		if !seen[name] {
			t.Errorf("operator %s has no row here", name)
		}
	}
}

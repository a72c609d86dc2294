package filters_test

import (
	"errors"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval/filters"
)

func TestParseReportsPathOfFirstError(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`[]`:             "not_a_dict (filters): Expected a dictionary of items.: not a JSON object",
		`{"groups":1}`:   "invalid_input (filters): groups must be a list",
		`{"groups":[1]}`: "invalid_input (filters): groups[0] must be an object",
		`{"groups":[{},{"rollout_percentage":"1"}]}`:        "invalid_input (filters): groups[1].rollout_percentage must be a number",
		`{"multivariate":{"variants":[{"key":"a"}]}}`:       "invalid_input (filters): multivariate.variants[0].rollout_percentage must be a number",
		`{"aggregation_group_type_index":1.5,"groups":[1]}`: "invalid_input (filters): groups[0] must be an object",
	} {
		_, err := filters.Parse([]byte(raw))
		var e *filters.Error
		if !errors.As(err, &e) || err.Error() != want {
			t.Errorf("Parse(%s): got %v, want %s", raw, err, want)
		}
	}
}

func TestParseTreeReadsNestedGroups(t *testing.T) {
	t.Parallel()
	tree, err := filters.ParseTree([]byte(`{"properties":{"type":"OR","values":[
		{"type":"AND","values":[{"key":"plan","value":"pro"},{"key":"seats","operator":"gt","value":5}]},
		{"key":"id","type":"cohort","value":7,"negation":true}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !tree.Any || len(tree.Trees) != 1 || tree.Trees[0].Any || len(tree.Trees[0].Properties) != 2 {
		t.Errorf("groups: %+v", tree)
	}
	if p := tree.Properties[0]; p.Type != "cohort" || !p.Negation || filters.Text(p.Value) != "7" {
		t.Errorf("cohort filter: %+v", p)
	}
}

func TestParseTreeWithoutFiltersIsNil(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `{}`, `{"properties":{}}`} {
		if tree, err := filters.ParseTree([]byte(raw)); tree != nil || err != nil {
			t.Errorf("ParseTree(%q): got %+v, %v", raw, tree, err)
		}
	}
}

func TestParseTreeRejectsUnknownShapes(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`1`, `{"properties":1}`, `{"type":"XOR"}`, `{"type":"OR","values":1}`, `{"type":"OR","values":[{"values":[]}]}`} {
		if _, err := filters.ParseTree([]byte(raw)); err == nil {
			t.Errorf("ParseTree(%s): no error", raw)
		}
	}
}

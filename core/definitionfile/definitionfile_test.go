package definitionfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/guidonhq/guidon/core/definitionfile"
)

const example = "../../examples/ci/seed.yaml"

func TestParseExample(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	f, err := definitionfile.Parse(example, source)
	if err != nil {
		t.Fatal(err)
	}
	p := f.Projects[0]
	if p.Name != "Shop" || len(p.Definitions["flags"]) != 5 || len(p.Definitions["cohorts"]) != 2 || len(p.Definitions["actions"]) != 1 || len(f.Users) != 1 || f.Users[0].Level != "admin" {
		t.Errorf("got %+v", f)
	}
	if want := `{"distinct_ids":["ada","grace"],"is_static":true,"name":"Invited"}`; string(p.Definitions["cohorts"][1].Body) != want {
		t.Errorf("cohort %s, want %s", p.Definitions["cohorts"][1].Body, want)
	}
	if want := `{"filters":{"groups":[{"properties":[],"rollout_percentage":100}]},"key":"everyone"}`; string(p.Definitions["flags"][4].Body) != want {
		t.Errorf("flag %s, want %s", p.Definitions["flags"][4].Body, want)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"projcts: []": `f:1: unknown key "projcts" in the file; did you mean "projects"?`,
		"projects:\n- name: a\n  flags:\n  - key: x\n    filter: {}":             `f:5: unknown key "filter" in a flag; did you mean "filters"?`,
		"projects:\n- name: a\n  flags:\n  - key: x\n  - key: x":                 `f:5: second flag "x"`,
		"projects:\n- name: a\n- name: a":                                        `f:3: second project "a"`,
		"projects:\n- key: phc_a":                                                `f:2: name of the project is missing`,
		"projects: {}":                                                           `f:1: projects must be a list`,
		"projects:\n- name: 7":                                                   `f:2: name of the project must be a text; write it in quotes`,
		"users:\n- email: a@b.c\n  level: boss":                                  `f:3: level must be member, admin or owner`,
		"projects:\n- name: a\n  cohorts:\n  - {id: 1, name: x}":                 `f:4: unknown key "id" in a cohort: filters refer to a cohort by its name`,
		"format: guidon-definitions/1\nflags: []":                                `f:1: the format is "guidon-definitions/1" and not guidon-definitions/2`,
		"projects:\n- name: a\n  scheduled_changes: [{flag: x, payload: {}}]":    `f:3: scheduled_at of the scheduled change is missing`,
		"projects:\n- name: a\n  retention: 90d":                                 `f:3: retention must be a mapping`,
		"roles:\n- {name: a}\n- {name: a}":                                       `f:3: second role "a"`,
		"projects:\n- name: a\n  flags:\n  - {key: x, filters: {a: .nan}}":       `f:4: .nan: not a finite number`,
		"projects:\n  - name: a\n b: c":                                          `f:2: did not find expected`,
		"projects:\n- name: a\n  name: b":                                        `f:3: duplicate key "name"`,
		"[]":                                                                     `f:1: the file must be a mapping`,
		"projects:\n- name: a\n---\nprojects: []\n":                              `f:3: the file has a second document`,
		"projects:\n- name: a\n  flags:\n  - {key: x, filters: {<<: {a: 1}}}":    `f:4: a merge key (<<) is not supported`,
		"personal_key: phx_a\nusers:\n- {email: a@b.c, key: phx_a}":              `f:3: user a@b.c has the personal key of another user`,
		"projects:\n- name: a\n  flags:\n  - key: x\n    bad: 1\n    worse: 2\n": "f:5: unknown key \"bad\" in a flag\nf:6: unknown key \"worse\" in a flag",
	} {
		_, err := definitionfile.Parse("f", []byte(source))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", source, err, want)
		}
	}
}

// TestAliases checks that anchors are followed and that a chain of them cannot grow
// without bound.
func TestAliases(t *testing.T) {
	t.Parallel()
	f, err := definitionfile.Parse("f", []byte("projects:\n- name: a\n  flags:\n  - {key: x, filters: &f {groups: []}}\n  - {key: y, filters: *f}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.Projects[0].Definitions["flags"][1].Body); got != `{"filters":{"groups":[]},"key":"y"}` {
		t.Error(got)
	}
	bomb := "projects:\n- name: a\n  flags:\n  - key: x\n    filters:\n      a: &a [1,1,1,1,1,1,1,1,1,1]\n"
	for c := 'b'; c <= 'k'; c++ {
		bomb += "      " + string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	if _, err := definitionfile.Parse("f", []byte(bomb)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a bomb of aliases: %v", err)
	}
}

// A file with a value that contains itself, a deep value, lists that aliases multiply, or
// problems in each line fails with few problems.
func TestEndlessFiles(t *testing.T) {
	t.Parallel()
	const flag = "projects:\n- name: a\n  flags:\n  - key: f\n    filters: "
	many := "projects:\n- name: a\n  flags:\n  - {key: f, roles: &r [" + strings.Repeat("r,", 1200) + "]}\n"
	for n := range 1200 {
		many += fmt.Sprintf("  - {key: f%d, roles: *r}\n", n)
	}
	wrong := "users:\n" + strings.Repeat("- {}\n", 5000)
	for name, c := range map[string]struct{ file, want string }{
		"self":        {flag + "&a {x: [*a]}\n", "f:5: the value is nested deeper than 200 levels"},
		"self, twice": {flag + "&a {x: *a, y: *a}\n", "f:5: the value is nested deeper than 200 levels"},
		"deep":        {flag + strings.Repeat("[", 300) + strings.Repeat("]", 300), "f:5: the value is nested deeper than 200 levels"},
		"lists":       {many, "the file is too large"},
		"problems":    {wrong, "f:1000: "},
	} {
		_, err := definitionfile.Parse("f", []byte(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), c.want) != 1 || strings.Count(err.Error(), "\n") > 1000 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

func TestReferencesAreReplaced(t *testing.T) {
	t.Parallel()
	const named = `{"aggregation_group_type_index":"company","analytics_dashboards":["Board"],"properties":[{"key":"id","type":"cohort","value":"Pro"},{"key":"base","type":"flag"},{"group_type_index":"company","key":"size","type":"group"},{"key":"id","type":"person","value":3}]}`
	const numbered = `{"aggregation_group_type_index":1,"analytics_dashboards":[7],"properties":[{"key":"id","type":"cohort","value":11},{"key":"5","type":"flag"},{"group_type_index":1,"key":"size","type":"group"},{"key":"id","type":"person","value":3}]}`
	ids := map[string]any{"cohort Pro": 11, "flag base": 5, "dashboard Board": 7, "group type company": 1}
	got, err := definitionfile.Resolve(json.RawMessage(named), func(kind, name string) any { return ids[kind+" "+name] })
	if err != nil || string(got) != numbered {
		t.Errorf("got %s, %v", got, err)
	}
	names := map[string]string{}
	for name, id := range ids {
		for _, kind := range []string{definitionfile.RefCohort, definitionfile.RefFlag, definitionfile.RefDashboard, definitionfile.RefGroupType} {
			if label, ok := strings.CutPrefix(name, kind+" "); ok {
				names[kind+fmt.Sprint(id)] = label
			}
		}
	}
	var v any
	if err := definitionfile.Decode([]byte(numbered), &v); err != nil {
		t.Fatal(err)
	}
	definitionfile.Name(v, func(kind, id string) (string, bool) { name, ok := names[kind+id]; return name, ok })
	if text, _ := json.Marshal(v); string(text) != named {
		t.Errorf("got %s", text)
	}
	for body, want := range map[string]string{
		`{"key":"id","type":"cohort","value":"Free"}`: `cohort "Free" does not exist`,
		`{"key":"id","type":"cohort","value":3}`:      `3 is not the name of a cohort`,
	} {
		if _, err := definitionfile.Resolve(json.RawMessage(body), func(string, string) any { return nil }); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Definitions may refer to later ones; a circle ends.
func TestInOrder(t *testing.T) {
	t.Parallel()
	needs := map[string]string{"a": "b", "b": "c", "c": "", "x": "y", "y": "x", "z": "fails"}
	made := map[string]bool{"": true}
	var items []definitionfile.Item
	for _, name := range []string{"a", "b", "c", "x", "y", "z"} {
		items = append(items, definitionfile.Item{Name: name})
	}
	failures := definitionfile.InOrder(items, func(it definitionfile.Item) error {
		switch need := needs[it.Name]; {
		case need == "fails":
			return errors.New("refused")
		case !made[need]:
			return &definitionfile.MissingError{Kind: definitionfile.RefCohort, Name: need}
		}
		made[it.Name] = true
		return nil
	})
	var failed []string
	for _, f := range failures {
		failed = append(failed, f.Item.Name)
	}
	if got := strings.Join(failed, " "); got != "z x y" || !made["a"] {
		t.Errorf("failed: %s", got)
	}
}

// TestSchema checks that the schema accepts the example and refuses what Parse refuses.
func TestSchema(t *testing.T) {
	t.Parallel()
	compiler := jsonschema.NewCompiler()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(definitionfile.Schema)))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("seed.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("seed.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{
		string(source): true,
		"projects:\n- name: a\n  flags:\n  - {key: x, filter: {}}": false,
		"projects:\n- key: phc_abcdefgh":                           false,
		"users:\n- {email: a@b.c, level: boss}":                    false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := definitionfile.Parse("f", []byte(text)); (err == nil) != valid {
			t.Errorf("Parse %s: %v", text, err)
		}
	}
}

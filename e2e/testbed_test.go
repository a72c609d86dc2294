//go:build e2e

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestTestbed runs the unmodified feature files of OpenFeature's flagd-testbed over
// OFREP. Left out are scenarios of what only flagd has: its percentages (fractional),
// its reading of pre-release versions (semver), its clock in rules, invalid rules, and
// flags without a default variant, which OFREP answers without a value and without an
// error.
func TestTestbed(t *testing.T) {
	t.Parallel()
	dir := install(t, "openfeature-testbed")
	s := start(t)
	created := 0
	for _, name := range []string{"testing-flags.json", "zero-flags.json", "evaluator-refs.json", "custom-ops.json"} {
		for key, f := range readTestbed(t, filepath.Join(dir, "testbed", "flags", name)) {
			filters, err := f.filters()
			if err != nil {
				t.Logf("left out %s of %s: %v", key, name, err)
				continue
			}
			s.create(t, flag{key: key, filters: filters})
			created++
		}
	}
	t.Logf("created %d flags", created)
	runs := []struct {
		name      string
		arguments []string
		scenarios int
	}{
		{"evaluation", []string{"--tags", "not @no-default", "features/evaluation.feature"}, 16},
		{"targeting", []string{"--name", "Evaluator reuse|Substring operators|Targeting by targeting key", "features/targeting.feature"}, 9},
	}
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) {
			cmd := exec.Command("venv/bin/behave", append([]string{"--no-color", "--format", "progress", "-D", "url=" + s.url, "-D", "project_key=" + s.project}, run.arguments...)...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, tail(out, 8000))
			}
			passed := passedScenarios.FindSubmatch(out)
			if passed == nil {
				t.Fatalf("no summary:\n%s", tail(out, 2000))
			}
			if n, _ := strconv.Atoi(string(passed[1])); n != run.scenarios {
				t.Errorf("%d scenarios passed, want %d", n, run.scenarios)
			}
		})
	}
}

var passedScenarios = regexp.MustCompile(`(\d+) scenarios? passed, 0 failed`)

// testbedFlag is a flag of flagd: a rule of JsonLogic chooses the variant.
type testbedFlag struct {
	Variants       map[string]json.RawMessage `json:"variants"` // 0.0 is a float, 0 is not
	DefaultVariant *string                    `json:"defaultVariant"`
	Targeting      any                        `json:"targeting"`

	evaluators map[string]any // rules that others name by $ref
}

// isBallmer is the rule that zero-flags.json names and evaluator-refs.json defines:
// flagd merges the files.
const isBallmer = "is_ballmer"

func readTestbed(t *testing.T, path string) map[string]testbedFlag {
	t.Helper()
	read := func(path string) (file struct {
		Flags      map[string]testbedFlag `json:"flags"`
		Evaluators map[string]any         `json:"$evaluators"`
	}) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return file
	}
	evaluators := read(filepath.Join(filepath.Dir(path), "evaluator-refs.json")).Evaluators
	if evaluators[isBallmer] == nil {
		t.Fatalf("no rule %s", isBallmer)
	}
	flags := read(path).Flags
	for key, f := range flags {
		f.evaluators = evaluators
		flags[key] = f
	}
	return flags
}

// filters translates the flag: each variant that the rule chooses becomes a condition,
// and the default variant the last one, without a filter. The values of variants are
// payloads.
func (f testbedFlag) filters() (string, error) {
	if f.DefaultVariant == nil {
		return "", errors.New("no default variant")
	}
	groups, err := f.conditions(f.Targeting)
	if err != nil {
		return "", err
	}
	groups = append(groups, condition(nil, *f.DefaultVariant))
	payloads, variants := map[string]string{}, []map[string]any{}
	for key, value := range f.Variants {
		payloads[key] = string(value)
		share := 0
		if key == *f.DefaultVariant {
			share = 100
		}
		variants = append(variants, map[string]any{"key": key, "rollout_percentage": share})
	}
	text, err := json.Marshal(map[string]any{"groups": groups, "multivariate": map[string]any{"variants": variants}, "payloads": payloads})
	return string(text), err
}

func condition(properties []map[string]any, variant string) map[string]any {
	if properties == nil {
		properties = []map[string]any{}
	}
	return map[string]any{"properties": properties, "rollout_percentage": 100, "variant": variant}
}

// conditions translates {"if": [test, variant, otherwise]}.
func (f testbedFlag) conditions(rule any) ([]map[string]any, error) {
	if variant, ok := rule.(string); ok {
		return []map[string]any{condition(nil, variant)}, nil
	}
	branches, ok := member(rule, "if").([]any)
	if !ok {
		if rule == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("rule %v", rule)
	}
	variant, ok := branches[1].(string)
	if !ok {
		return nil, fmt.Errorf("a rule chooses %v", branches[1])
	}
	var otherwise []map[string]any
	var err error
	if len(branches) > 2 {
		if otherwise, err = f.conditions(branches[2]); err != nil {
			return nil, err
		}
	}
	properties, err := f.properties(branches[0])
	if errors.Is(err, errNeverTrue) {
		return otherwise, nil
	}
	return append([]map[string]any{condition(properties, variant)}, otherwise...), err
}

// errNeverTrue says that a test is false for every context.
var errNeverTrue = errors.New("the test is never true")

// properties translates the test of a rule into filters of properties.
func (f testbedFlag) properties(test any) (out []map[string]any, err error) {
	if name, ok := member(test, "$ref").(string); ok {
		return f.properties(f.evaluators[name])
	}
	if all, ok := member(test, "and").([]any); ok {
		for _, one := range all {
			more, err := f.properties(one)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	}
	for name, operator := range map[string]string{"==": "exact", "starts_with": "starts_with", "ends_with": "ends_with"} {
		operands, ok := member(test, name).([]any)
		if !ok || len(operands) != 2 {
			continue
		}
		if member(operands[0], "var") == nil {
			operands[0], operands[1] = operands[1], operands[0]
		}
		if _, ok := operands[1].(string); !ok && name != "==" {
			return nil, errNeverTrue // flagd looks for texts only
		}
		return []map[string]any{{"key": variable(operands[0]), "type": "person", "operator": operator, "value": fmt.Sprint(operands[1])}}, nil
	}
	return nil, fmt.Errorf("test %v", test)
}

// variable is the name of {"var": name} or {"var": [name]}; the targeting key is the
// distinct id.
func variable(v any) string {
	name := member(v, "var")
	if list, ok := name.([]any); ok && len(list) > 0 {
		name = list[0]
	}
	if name == "targetingKey" {
		return "distinct_id"
	}
	return fmt.Sprint(name)
}

func member(v any, name string) any {
	object, _ := v.(map[string]any)
	return object[name]
}

package cel_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/plugins/matcher/cel"
	"github.com/guidonhq/guidon/sdk"
)

func matcher(t testing.TB) *cel.Matcher {
	t.Helper()
	m := cel.New()
	if _, err := m.Open(t.Context(), sdk.OpenRequest{}); err != nil {
		t.Fatal(err)
	}
	return m
}

func program(t testing.TB, m *cel.Matcher, expression string) sdk.Program {
	t.Helper()
	value, err := json.Marshal(expression)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Compile("cel/matches", value)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return p
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	m := matcher(t)
	for _, tt := range []struct {
		expression, property string
		want                 sdk.Verdict
	}{
		{`value == "pro"`, `"pro"`, sdk.Match},
		{`value == "pro"`, `"team"`, sdk.NoMatch},
		{`value != "pro"`, `5`, sdk.Match},
		{`value > 3`, `4`, sdk.Match},
		{`value > 3`, `3.5`, sdk.Match},
		{`value > 3.5`, `4`, sdk.Match},
		{`value + 1 == 5`, `4`, sdk.Match},
		{`value % 2 == 0`, `4`, sdk.Match},
		{`double(value) * 1.5 > 5.0`, `4`, sdk.Match},
		{`value == 9007199254740993`, `9007199254740993`, sdk.Match},
		{`value > 3`, `"4"`, sdk.NoMatch},
		{`value > 3`, `null`, sdk.NoMatch},
		{`value`, `true`, sdk.Match},
		{`value`, `"true"`, sdk.NoMatch},
		{`value == null`, `null`, sdk.Match},
		{`value.size() == 2`, `["a","b"]`, sdk.Match},
		{`"vip" in value`, `["a","vip"]`, sdk.Match},
		{`value.all(n, n > 0)`, `[1,2,0]`, sdk.NoMatch},
		{`value.plan.name == "pro"`, `{"plan":{"name":"pro"}}`, sdk.Match},
		{`value.plan.name == "pro"`, `{}`, sdk.NoMatch},
		{`has(value.plan)`, `{"plan":1}`, sdk.Match},
		{`value.matches("^a+$")`, `"aaa"`, sdk.Match},
		{`value.lowerAscii().startsWith("ada")`, `"ADA"`, sdk.Match},
		{`timestamp(value) < timestamp("2026-01-01T00:00:00Z")`, `"2025-12-31T00:00:00Z"`, sdk.Match},
		{`timestamp(value) < timestamp("2026-01-01T00:00:00Z")`, `"yesterday"`, sdk.NoMatch},
		{`1 / value > 0`, `0`, sdk.NoMatch},
		{`properties.plan == "pro" && properties["seats"] >= 5`, `{"plan":"pro","seats":5}`, sdk.Match},
		{`properties.plan == "pro" || properties.seats >= 5`, `{"plan":"pro"}`, sdk.Match},
		{`"plan" in properties`, `{"plan":"pro"}`, sdk.Match},
		{`!has(properties.plan)`, `{}`, sdk.Match},
	} {
		in := &sdk.Input{Value: json.RawMessage(tt.property)}
		if got := program(t, m, tt.expression).Match(in); got != tt.want {
			t.Errorf("%s of %s: %s", tt.expression, tt.property, got)
		}
	}
}

func TestExpressionsThatAreRefused(t *testing.T) {
	t.Parallel()
	m := matcher(t)
	for _, tt := range []struct{ value, says string }{
		{`"value >"`, "Syntax error"},
		{`"nothing > 3"`, "undeclared reference"},
		{`"value.nonsense()"`, "undeclared reference"},
		{`"'a' + 'b'"`, "true or false"},
		{`"1 + true == 2"`, "no matching overload"},
		{`"properties.size() > 2"`, "one by one"},
		{`"properties[value] == 1"`, "one by one"},
		{`"properties.plan == value"`, "either value or properties"},
		{`7`, "want an expression"},
		{`"` + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + ` == 1"`, "recursion"},
	} {
		_, err := m.Compile("cel/matches", json.RawMessage(tt.value))
		if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassConfig || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %v", tt.value, err)
		}
	}
}

func TestPropertiesThatAreRead(t *testing.T) {
	t.Parallel()
	m := matcher(t)
	p := program(t, m, `properties.plan == "pro" && (properties["seats"] > 5 || has(properties.trial)) && properties.plan != ""`)
	if r, ok := p.(sdk.Reader); !ok || !slices.Equal(r.Reads(), []string{"plan", "seats", "trial"}) {
		t.Errorf("%+v", p)
	}
	if _, ok := program(t, m, `value > 3`).(sdk.Reader); ok {
		t.Error("an expression about the value reads properties")
	}
}

// An expression that runs for too long is stopped with an error.
func TestWhatAnExpressionMayCost(t *testing.T) {
	t.Parallel()
	m := matcher(t)
	list, err := json.Marshal(make([]int, 1000))
	if err != nil {
		t.Fatal(err)
	}
	in := &sdk.Input{Value: list}
	if got := program(t, m, `value.all(a, value.all(b, value.all(c, a + b + c == 0)))`).Match(in); got != sdk.Failed {
		t.Errorf("%s", got)
	}
	if got := program(t, m, `value.all(a, a == 0)`).Match(in); got != sdk.Match {
		t.Errorf("a cheap one: %s", got)
	}
}

func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	m := matcher(t)
	for _, o := range m.Operators() {
		for _, e := range o.Examples {
			p, err := m.Compile(o.ID, e.Value)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Match(&sdk.Input{Value: e.Property}); got != e.Result {
				t.Errorf("%s of %s: %s", e.Value, e.Property, got)
			}
		}
	}
}

func FuzzExpression(f *testing.F) {
	f.Add(`value > 3`, `4`)
	f.Add(`properties.a.b == "c"`, `{"a":{"b":"c"}}`)
	m := matcher(f)
	f.Fuzz(func(t *testing.T, expression, property string) {
		value, err := json.Marshal(expression)
		if err != nil || !json.Valid([]byte(property)) {
			return
		}
		if p, err := m.Compile("cel/matches", value); err == nil {
			p.Match(&sdk.Input{Value: json.RawMessage(property)})
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	p := program(b, matcher(b), `value.endsWith("@example.com") && value.size() < 64`)
	in := &sdk.Input{Value: json.RawMessage(`"ada@example.com"`)}
	b.ReportAllocs()
	for b.Loop() {
		p.Match(in)
	}
}

// Package cel is a matcher for conditions that no operator has: an expression
// in the Common Expression Language over the value of a property, or over
// several properties. What an expression may cost is limited.
package cel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	CostLimit int `json:"cost_limit" min:"1" max:"10000000" doc:"The most that judging one value may cost, in units of about one operation or ten characters."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "cel", Version: "1.0.0",
		Summary: "Judges properties by expressions in the Common Expression Language.",
		Matcher: func() sdk.Matcher { return New() },
	}
}

// Matcher offers the operator.
type Matcher struct {
	cfg config
	env *cel.Env
}

var (
	_ sdk.Matcher    = (*Matcher)(nil)
	_ sdk.Configured = (*Matcher)(nil)
)

// New returns a matcher that is not open, its config at the defaults.
func New() *Matcher { return &Matcher{cfg: config{CostLimit: 10_000}} }

// Config is where the SDK puts the operator's config.
func (m *Matcher) Config() any { return &m.cfg }

// The limits of an expression's text.
const (
	maxText  = 4096
	maxDepth = 64
)

// Open makes the environment of expressions.
func (m *Matcher) Open(context.Context, sdk.OpenRequest) (sdk.MatcherProperties, error) {
	env, err := cel.NewEnv(
		cel.Variable("value", cel.DynType),
		cel.Variable("properties", cel.MapType(cel.StringType, cel.DynType)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxText), cel.ParserRecursionLimit(maxDepth),
		ext.Strings(),
	)
	if err != nil {
		return sdk.MatcherProperties{}, fmt.Errorf("make the environment of expressions: %w", err)
	}
	m.env = env
	return sdk.MatcherProperties{}, nil
}

// Operators lists the one there is.
func (m *Matcher) Operators() []sdk.Operator {
	example := func(value, property string, result sdk.Verdict) sdk.OperatorExample {
		return sdk.OperatorExample{Value: json.RawMessage(value), Property: json.RawMessage(property), Result: result}
	}
	return []sdk.Operator{{
		ID: "cel/matches", Version: "1", Label: "satisfies expression",
		Doc: "The value is an expression in the Common Expression Language that is true or false. `value` is the property: a whole number is " +
			"an int, other numbers are doubles. Or it names several properties, properties.plan or properties[\"plan\"]; then the filter's own " +
			"property is not looked at. An expression that cannot be computed with what is there, such as a comparison of a text with a number, " +
			"does not match.",
		ValueSchema: json.RawMessage(`{"type": "string", "minLength": 1, "maxLength": 4096}`),
		Missing:     sdk.MissingNoMatch, Purity: sdk.Pure, Cost: time.Microsecond,
		Examples: []sdk.OperatorExample{
			example(`"value.endsWith('@example.com') && value.size() < 64"`, `"ada@example.com"`, sdk.Match),
			example(`"value.endsWith('@example.com') && value.size() < 64"`, `"ada@example.org"`, sdk.NoMatch),
			example(`"value in [2, 3, 5, 7]"`, `5`, sdk.Match),
			example(`"value.exists(tag, tag.startsWith('beta'))"`, `["beta-2", "vip"]`, sdk.Match),
			example(`"value > 3"`, `"a text"`, sdk.NoMatch),
			example(`"properties.plan == 'pro' && properties.seats >= 5"`, `{"plan": "pro", "seats": 7}`, sdk.Match),
			example(`"properties.plan == 'pro' && properties.seats >= 5"`, `{"plan": "pro"}`, sdk.NoMatch),
		},
	}}
}

// Compile checks an expression.
func (m *Matcher) Compile(_ string, value json.RawMessage) (sdk.Program, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, sdk.ValueError("", errors.New("want an expression, as a text"))
	}
	ast, issues := m.env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, sdk.ValueError("", err)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, sdk.ValueError("", fmt.Errorf("want an expression that is true or false; this one is a %s", t))
	}
	reads, err := readsOf(ast)
	if err != nil {
		return nil, sdk.ValueError("", err)
	}
	program, err := m.env.Program(ast, cel.CostLimit(uint64(m.cfg.CostLimit)), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, sdk.ValueError("", err)
	}
	e := &expression{program: program}
	if reads != nil {
		return &several{expression: e, reads: reads}, nil
	}
	return e, nil
}

// Close has nothing to release.
func (m *Matcher) Close(context.Context) error { return nil }

package cel

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/guidonhq/guidon/sdk"
)

// expression judges the value of the filter's property.
type expression struct{ program cel.Program }

// Match computes the expression.
func (e *expression) Match(in *sdk.Input) sdk.Verdict { return e.judge(in, "value") }

// several judges several properties.
type several struct {
	*expression
	reads []string
}

// Reads names them.
func (s *several) Reads() []string { return s.reads }

// Match computes the expression.
func (s *several) Match(in *sdk.Input) sdk.Verdict { return s.judge(in, "properties") }

func (e *expression) judge(in *sdk.Input, name string) sdk.Verdict {
	given, err := decode(in.Value)
	if err != nil {
		return in.Fail(sdk.Permanent(err))
	}
	out, _, err := e.program.Eval(map[string]any{name: given})
	if stopped, ok := errors.AsType[interpreter.EvalCancelledError](err); ok {
		return in.Fail(sdk.Permanent(stopped))
	}
	return sdk.Matches(err == nil && out == types.True)
}

// decode reads a JSON value; whole numbers are integers where they fit.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return plain(v), nil
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return nil
		}
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

// readsOf finds the properties that an expression names; nil when it is about
// the value.
func readsOf(checked *cel.Ast) ([]string, error) {
	var reads []string
	values, mentions, named := 0, 0, 0
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			switch e.AsIdent() {
			case "value":
				values++
			case "properties":
				mentions++
			}
		case ast.SelectKind:
			if isProperties(e.AsSelect().Operand()) {
				named++
				reads = append(reads, e.AsSelect().FieldName())
			}
		case ast.CallKind:
			if name, ok := indexed(e.AsCall()); ok {
				named++
				reads = append(reads, name)
			}
		default:
		}
	}))
	switch {
	case mentions != named:
		return nil, errors.New("name the properties one by one: properties.plan or properties[\"plan\"]")
	case values > 0 && mentions > 0:
		return nil, errors.New("use either value or properties")
	}
	slices.Sort(reads)
	return slices.Compact(reads), nil
}

func isProperties(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "properties" }

// indexed is the name in properties["name"], or in "name" in properties.
func indexed(c ast.CallExpr) (string, bool) {
	args := c.Args()
	if len(args) != 2 {
		return "", false
	}
	of, name := args[0], args[1]
	switch c.FunctionName() {
	case operators.Index:
	case operators.In:
		of, name = name, of
	default:
		return "", false
	}
	if !isProperties(of) || name.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := name.AsLiteral().Value().(string)
	return text, ok
}

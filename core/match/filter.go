package match

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/text"
)

// Spec is the source of a filter: a property, an operator and the JSON text of
// the value to compare with (nil without a value).
type Spec struct {
	Key      string
	Operator string
	Value    []byte
}

// Options holds the inputs of a compilation besides the filter.
type Options struct {
	Location *time.Location // for dates without an offset; nil is UTC
	Registry Registry       // operators of plugins; nil has none
	Limits   Limits         // of regular expressions; only Expression is checked
}

// Matcher is a compiled filter that reads one property.
type Matcher interface {
	// Property is the name of the property to hand to Match.
	Property() string
	// Match reports whether the value passes. It does not retain v.
	Match(v *Value, env *Env) Result
}

// Filter is a compiled filter. It is immutable and safe for parallel use.
type Filter struct {
	key      string
	operator string
	expected []byte
	missing  Result
	test     test // nil for operators of plugins
	price    int64
	pattern  bool // price is the size of a regular expression
	problem  error

	// Operators of plugins only.
	program Program
	reads   []string
	source  string
	open    bool // every match is Unknown
}

var _ Matcher = (*Filter)(nil)

// Compile prepares a filter. It fails with an Invalid fault of code
// invalid_operator for an unknown operator and of code invalid_input for a
// value that is not JSON. A value that the operator cannot use does not fail
// here: such a filter passes nothing (or the usable part), and Problem returns
// the reason.
func Compile(s Spec, opts Options) (*Filter, error) {
	name, builtIn := Canonical(s.Operator)
	f := &Filter{key: s.Key, operator: name, expected: s.Value}
	if !builtIn {
		return f, f.compileExternal(opts.Registry)
	}
	row := table[name]
	f.missing = row.missing
	o := operand{operator: name, location: opts.Location, limits: opts.Limits.WithDefaults(), price: &f.price}
	if o.location == nil {
		o.location = time.UTC
	}
	if s.Value != nil {
		v, err := fastjson.ParseBytes(s.Value)
		if err != nil {
			return nil, fault.Field("value", "invalid_input", "The value of a filter must be valid JSON").Because(err)
		}
		o.json = v
		o.value, _ = FromJSON(v, nil)
	}
	f.compileBuiltIn(row, o)
	return f, nil
}

func (f *Filter) compileBuiltIn(row row, o operand) {
	if row.values != NoValue && o.json == nil {
		f.test, f.missing, f.problem = never, False, o.problem("invalid_value", "there must be one")
		return
	}
	f.price, f.pattern = o.perByte(), row.form == PatternForm
	f.test, f.problem = row.compile(o)
	if f.test == nil {
		f.test, f.missing = never, False
	}
}

func (f *Filter) compileExternal(known Registry) error {
	if strings.Contains(f.operator, "/") && known != nil {
		if op, ok := known.Operator(f.operator); ok {
			f.missing, f.source = op.Missing, op.Source
			var made Compiled
			made, f.problem = op.Compile(f.expected)
			f.program, f.reads, f.open = made.Program, made.Reads, made.Open || f.problem != nil
			if f.open {
				f.missing = Unknown
			}
			return nil
		}
	}
	return fault.Fieldf("operator", "invalid_operator", "Unknown operator: %s", text.Ellipsis(f.operator, maxQuoted))
}

// CompileFilter decodes and compiles a filter object with the fields key,
// operator and value before it is stored: it also rejects a value that the
// operator cannot use. Errors are Invalid faults whose text is for the author
// of the filter.
func CompileFilter(raw []byte, opts Options) (*Filter, error) {
	var in struct {
		Key      string          `json:"key"`
		Operator string          `json:"operator"`
		Value    json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fault.Field("", "invalid_input", "A filter must be an object with key, operator and value").Because(err)
	}
	if in.Key == "" {
		return nil, fault.Field("key", "required", "A filter must name a property")
	}
	f, err := Compile(Spec{Key: in.Key, Operator: in.Operator, Value: in.Value}, opts)
	if err != nil {
		return nil, err
	}
	return f, f.Problem()
}

// Property returns the name of the property that the filter reads.
func (f *Filter) Property() string { return f.key }

// Operator returns the operator's own name.
func (f *Filter) Operator() string { return f.operator }

// Expected returns the JSON text of the value to compare with, or nil.
func (f *Filter) Expected() []byte { return f.expected }

// External reports whether a plugin evaluates this filter.
func (f *Filter) External() bool { return f.test == nil }

// Source returns the name of the plugin that evaluates this filter, or "".
func (f *Filter) Source() string { return f.source }

// Reads returns the properties that an operator of a plugin reads instead of
// Property, or nil. The value for Match is then an object of them, built with
// AppendProperty and CloseObject in this order.
func (f *Filter) Reads() []string { return f.reads }

// Open reports whether the operator of a plugin has not checked the value yet, so that
// every match is Unknown.
func (f *Filter) Open() bool { return f.open }

// Problem returns the error about the value of the filter, or nil. It is an
// Invalid fault for built-in operators.
func (f *Filter) Problem() error { return f.problem }

// Match reports whether v passes. It never blocks. It is Unknown if the budget
// of env refuses it. Only lists, objects and dates in rare forms allocate.
func (f *Filter) Match(v *Value, env *Env) Result {
	if v.kind == Missing {
		return f.missing
	}
	if f.test != nil {
		if env.Budget != nil && !f.admitted(env.Budget, v) {
			return Unknown
		}
		return Of(f.test(v, env.Now))
	}
	if env.External == nil || f.open {
		return Unknown
	}
	return env.External.Match(f.program, v)
}

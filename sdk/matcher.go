package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Matcher adds operators to property filters. The SDK makes one value for each
// configured instance and opens it once. Operators, Compile and the programs'
// Match are called from many goroutines at once; Open and Close never run beside
// them.
//
// A matcher may also implement Configured, Validator, Checker, DataVersioner and
// Metricser.
type Matcher interface {
	// Open loads what the operators need. A ConfigError stops the instance until
	// the operator changes its config; any other error is tried again.
	// OpenRequest.CommittedThrough is always 0.
	Open(ctx context.Context, req OpenRequest) (MatcherProperties, error)
	// Operators lists what the matcher offers. It is called after Open, and the
	// list does not change until Close.
	Operators() []Operator
	// Compile turns the value of a filter into a program. An error refuses the
	// filter: make it with ValueError to point at the place. The value has
	// passed the operator's ValueSchema. Compile must not block: it runs on the
	// way of a request. It is called again after a restart, and for values that
	// have not been used for long.
	Compile(operator string, value json.RawMessage) (Program, error)
	// Close releases what Open took. It is called once, also after an Open
	// that failed.
	Close(ctx context.Context) error
}

// MatcherProperties is how a matcher wants to be fed.
type MatcherProperties struct {
	// MaxInFlight is how many batches may be matched at once; 0 means one for
	// each CPU.
	MaxInFlight int
}

// Program is a compiled filter value. Match is called from many goroutines at
// once, must not block, and must not keep the input. A panic concerns that one
// input alone.
//
// A Program may also implement Reader.
type Program interface {
	Match(in *Input) Verdict
}

// ProgramFunc is a function as a Program.
type ProgramFunc func(in *Input) Verdict

// Match calls f.
func (f ProgramFunc) Match(in *Input) Verdict { return f(in) }

// Reader is implemented by a program that looks at several properties. Its input
// is then not the value of the filter's property but an object of the properties
// it names, as far as they are there: see Input.Property. The operator's Missing
// rule does not apply.
type Reader interface {
	// Reads names the properties. The answer is the same at every call.
	Reads() []string
}

// Input is what a program looks at. It is valid until Match returns.
type Input struct {
	// Value is the property's value, any JSON: a string has its quotes. It is
	// never empty; a property that is not there does not reach the program. For a
	// Reader it is the object of its properties.
	Value json.RawMessage
	// Now is the time of the evaluation, the same for all of one request. Only
	// an operator whose Purity is TimeDependent or Volatile may look at it.
	Now time.Time

	err *Error
}

// String returns the value when it is a JSON string.
func (in *Input) String() (string, bool) {
	if len(in.Value) < 2 || in.Value[0] != '"' {
		return "", false
	}
	if plain := in.Value[1 : len(in.Value)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain), true // nearly all are
	}
	var s string
	return s, json.Unmarshal(in.Value, &s) == nil
}

// Number returns the value when it is a JSON number.
func (in *Input) Number() (float64, bool) {
	if len(in.Value) == 0 || in.Value[0] != '-' && (in.Value[0] < '0' || in.Value[0] > '9') {
		return 0, false
	}
	var f float64
	return f, json.Unmarshal(in.Value, &f) == nil
}

// Property returns one of the properties that a Reader named, and whether it is
// there.
func (in *Input) Property(name string) (json.RawMessage, bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(in.Value, &all) != nil {
		return nil, false
	}
	value, ok := all[name]
	return value, ok
}

// Fail records why the input cannot be evaluated and returns Failed.
func (in *Input) Fail(err error) Verdict {
	in.err = AsError(err)
	return Failed
}

// Verdict is the result of a program. The zero value is never an answer: a flag that
// needs it is not computed.
type Verdict uint8

// The verdicts.
const (
	Unknown Verdict = iota // it could not be found out
	NoMatch                // the property does not pass
	Match                  // the property passes
	Failed                 // the property cannot be evaluated
)

var verdictNames = [...]string{"unknown", "no_match", "match", "failed"}

// String returns the verdict in snake_case.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

// Matches is Match for true and NoMatch for false.
func Matches(ok bool) Verdict {
	if ok {
		return Match
	}
	return NoMatch
}

// Operator describes one way to test a property.
type Operator struct {
	// ID is lower case and holds one slash: "cidr/contains". What is before the
	// slash is the matcher's own.
	ID string
	// Version changes when the same value gives different results: results of
	// another version are never reused. "" is as good as any.
	Version string
	// Label and Doc are for people.
	Label, Doc string
	// ValueSchema is the JSON Schema (draft 2020-12) of the filter's value; nil
	// takes anything.
	ValueSchema json.RawMessage
	// PropertyTypes are the JSON types it makes sense for: "string", "number",
	// "boolean", "array", "object". None means all. It is a hint for editors.
	PropertyTypes []string
	// Missing is what a property that is not there means.
	Missing Missing
	// Purity declares how long a result is valid.
	Purity Purity
	// CacheTTL bounds how long a result is kept; 0 leaves it to the host. It is
	// never kept when Purity is Volatile.
	CacheTTL time.Duration
	// Cost is what one test takes, roughly.
	Cost time.Duration
	// CEL is an equivalent expression in the Common Expression Language over
	// `value` and `property`, so that a client can run it; may be "".
	CEL string
	// Examples are documentation that is tested. Give at least one that matches
	// and one that does not.
	Examples []OperatorExample
}

// OperatorExample is one true statement about an operator.
type OperatorExample struct {
	// Value is the filter's value and Property the property's, both JSON.
	Value, Property json.RawMessage
	// Result is what it gives.
	Result Verdict
	// Now is the time of the evaluation, for operators that look at it.
	Now time.Time
}

// Missing is what a property that is not there means to an operator.
type Missing uint8

// The meanings.
const (
	MissingFails   Missing = iota // the filter cannot be evaluated
	MissingNoMatch                // it does not pass
	MissingMatches                // it passes
)

// Purity declares what a result depends on, beside the two values.
type Purity uint8

// The purities, weakest first.
const (
	Volatile      Purity = iota // anything: never kept
	Pure                        // nothing: kept for ever
	TimeDependent               // the time: kept for CacheTTL
	DataDependent               // the matcher's data: kept until DataVersion changes
)

// DataVersioner is implemented by a matcher with operators that are
// DataDependent. DataVersion identifies the current data; it is called once for
// each batch.
type DataVersioner interface {
	DataVersion() string
}

// ValueError refuses the value of a filter; pointer is the JSON Pointer of the
// place in it, "" for the whole.
func ValueError(pointer string, err error) error { return ConfigError(pointer, err) }

// Metricser is implemented by a plugin of any kind that counts things of its
// own.
type Metricser interface {
	// Metrics returns the instance's metrics in the OpenMetrics text format. It
	// answers from memory. The host adds the labels of instance and plugin.
	Metrics(ctx context.Context) ([]byte, error)
}

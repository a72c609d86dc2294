package match

import "github.com/guidonhq/guidon/core/jsontext"

// Registry knows the operators that are not built in. Their ids contain a
// slash, built-in ones never do.
type Registry interface {
	// Operator returns the operator with this id, and whether there is one.
	Operator(id string) (ExternalOperator, bool)
}

// ExternalOperator is an operator that is not built in.
type ExternalOperator struct {
	// Source names the plugin that offers it.
	Source string
	// Missing is the result for a property that is not there; Unknown makes
	// whatever depends on it impossible to compute.
	Missing Result
	// Equivalent says the same as an expression in the Common Expression
	// Language, for those who evaluate by themselves; "" when nobody wrote one.
	Equivalent string
	// Compile checks the JSON text of a filter value. Its error is shown to
	// whoever wrote the filter.
	Compile func(value []byte) (Compiled, error)
}

// Compiled is a filter value that its operator can use.
type Compiled struct {
	Program Program
	// Reads are the properties that the program looks at instead of the
	// filter's own. Its value is then the object of those that are there, as
	// AppendProperty writes it, and there is always one.
	Reads []string
	// Open says that nobody could look at the value yet: every match is
	// Unknown.
	Open bool
}

// Program names a compiled filter value of an operator that is not built in:
// whatever the Registry handed out.
type Program string

// External answers for filters whose operator is not built in. It is asked
// for one pair at a time and must not block: whoever calls plugins collects
// the pairs of a request in a first pass that says Unknown, asks once for all
// of them, and answers from what came back in a second pass.
type External interface {
	Match(p Program, v *Value) Result
}

// Pair is one question to a plugin: does the value pass the program?
type Pair struct {
	Program Program
	Value   Value
}

// AppendProperty appends one more property to the text of an object that began
// as nothing; CloseObject ends it.
func AppendProperty(dst []byte, start int, name string, v *Value) []byte {
	if len(dst) == start {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	dst = append(jsontext.AppendString(dst, name), ':')
	return v.AppendTo(dst)
}

// CloseObject ends the object that AppendProperty has begun at start, or
// appends an empty one, and returns it as a value beside dst. The value is a
// view of dst.
func CloseObject(dst []byte, start int) (Value, []byte) {
	if len(dst) == start {
		dst = append(dst, '{')
	}
	dst = append(dst, '}')
	return Value{kind: Object, text: view(dst[start:])}, dst
}

package match

import "github.com/guidonhq/guidon/core/jsontext"

// Registry holds the operators that are not built in. Their ids contain a
// slash; names of built-in operators do not.
type Registry interface {
	// Operator returns the operator with this id and whether it exists.
	Operator(id string) (ExternalOperator, bool)
}

// ExternalOperator is an operator that is not built in.
type ExternalOperator struct {
	// Source is the name of the plugin.
	Source string
	// Missing is the result for an absent property. Unknown prevents the
	// evaluation of everything that depends on the filter.
	Missing Result
	// Equivalent is an expression of the Common Expression Language with the
	// same result, for clients that evaluate locally; "" without one.
	Equivalent string
	// Compile checks the JSON text of a filter value. Its error is shown to
	// the author of the filter.
	Compile func(value []byte) (Compiled, error)
}

// Compiled is a filter value that the operator accepted.
type Compiled struct {
	Program Program
	// Reads lists the properties that the program reads instead of the
	// property of the filter. The value of a match is then the object of the
	// present ones, as AppendProperty writes it; it is never Missing.
	Reads []string
	// Open marks a value that the plugin has not checked yet: every match is
	// Unknown.
	Open bool
}

// Program identifies a compiled filter value of an operator that is not built
// in. Only its Registry interprets it.
type Program string

// External evaluates filters whose operator is not built in. Match must not
// block. Callers of plugins evaluate in two passes: the first collects the pairs
// of a request and returns Unknown, one call to the plugin evaluates all of them,
// and the second pass returns their results.
type External interface {
	Match(p Program, v *Value) Result
}

// Pair is one value for a plugin to match against a program.
type Pair struct {
	Program Program
	Value   Value
}

// AppendProperty appends a property to the object that begins at start in dst.
// CloseObject ends the object.
func AppendProperty(dst []byte, start int, name string, v *Value) []byte {
	if len(dst) == start {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	dst = append(jsontext.AppendString(dst, name), ':')
	return v.AppendTo(dst)
}

// CloseObject ends the object that AppendProperty began at start; without a
// property it appends an empty object. The returned value is a view of dst.
func CloseObject(dst []byte, start int) (Value, []byte) {
	if len(dst) == start {
		dst = append(dst, '{')
	}
	dst = append(dst, '}')
	return Value{kind: Object, text: view(dst[start:])}, dst
}

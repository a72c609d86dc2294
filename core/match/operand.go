package match

import (
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/text"
)

// maxQuoted is how many bytes of a wrong value an error quotes.
const maxQuoted = 80

// operand is the value of a filter that is compiled.
type operand struct {
	operator string
	json     *fastjson.Value // nil when the filter has no value
	value    Value
	location *time.Location
	limits   Limits
	price    *int64 // of the filter: comparisons per byte of text
}

// items returns the elements of a list, or any other value alone.
func (o operand) items() []Value {
	if o.value.kind != Array {
		return []Value{o.value}
	}
	list := o.json.GetArray()
	out := make([]Value, len(list))
	for i, item := range list {
		out[i], _ = FromJSON(item, nil)
	}
	return out
}

// problem returns the error about the value of the filter.
func (o operand) problem(code, must string) error {
	return fault.Fieldf("value", code, "Invalid value for operator %s: %s, got %s", o.operator, must, text.Ellipsis(string(o.value.AppendTo(nil)), maxQuoted))
}

// scalar returns an error unless the value is a string or a number.
func (o operand) scalar() error {
	if o.value.kind == String || o.value.kind == Number {
		return nil
	}
	return o.problem("invalid_value", "it must be a string or a number")
}

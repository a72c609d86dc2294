package match

import (
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
)

// operand is a filter's value while its test is made.
type operand struct {
	operator string
	json     *fastjson.Value // nil when the filter has no value
	value    Value
	location *time.Location
}

// items are the elements of a list, or the value alone.
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

// problem is what is wrong with the filter's value.
func (o operand) problem(code, must string) error {
	return fault.Fieldf("value", code, "Invalid value for operator %s: %s, got %s", o.operator, must, shorten(o.value.AppendTo(nil)))
}

// scalar refuses what is neither a string nor a number.
func (o operand) scalar() error {
	if o.value.kind == String || o.value.kind == Number {
		return nil
	}
	return o.problem("invalid_value", "it must be a string or a number")
}

func shorten(b []byte) string {
	const most = 80
	if len(b) <= most {
		return string(b)
	}
	return string(b[:most]) + "…"
}

package match

import (
	"time"

	"github.com/valyala/fastjson"
)

// manyItems is the number of items from which a map is faster than a loop.
const manyItems = 8

// compileExact compares texts without case, with any element of a list. An empty
// list passes truthy values.
func compileExact(o operand) (test, error) {
	if o.json == nil {
		return never, o.problem("invalid_value", "there must be one")
	}
	items := o.items()
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = lower(exactText(&items[i]))
	}
	switch {
	case len(texts) == 0:
		return func(v *Value, _ time.Time) bool { return v.Truthy() }, nil
	case len(texts) == 1:
		want := texts[0]
		return func(v *Value, _ time.Time) bool { return equalLower(exactText(v), want) }, nil
	case len(texts) <= manyItems:
		return func(v *Value, _ time.Time) bool { return equalsAny(exactText(v), texts) }, nil
	}
	set := make(map[string]struct{}, len(texts))
	for _, text := range texts {
		set[text] = struct{}{}
	}
	return func(v *Value, _ time.Time) bool {
		var buf [128]byte
		_, ok := set[string(appendLower(buf[:0], exactText(v)))]
		return ok
	}, nil
}

func equalsAny(s string, texts []string) bool {
	for _, want := range texts {
		if equalLower(s, want) {
			return true
		}
	}
	return false
}

// Truthy reports whether the value is true, the text "true" in any case, or a
// list of such values.
func (v *Value) Truthy() bool {
	if v.kind == Array {
		p, err := fastjson.Parse(v.text)
		if err != nil {
			return false
		}
		for _, item := range p.GetArray() {
			if one, _ := FromJSON(item, nil); !one.Truthy() {
				return false
			}
		}
		return true
	}
	return (v.kind == Bool || v.kind == String) && equalLower(v.text, "true")
}

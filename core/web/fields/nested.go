package fields

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web/body"
)

// Any reads any value as JSON text. In a form the value may be JSON in a string; a
// string that is not JSON stays a string.
func (f *Fields) Any(name string, rs ...Rule) Opt[json.RawMessage] {
	raw, _, o := get[json.RawMessage](f, name, rs)
	if raw != nil {
		o.Value = f.inner(raw)
	}
	return o
}

// Object reads a JSON object as text.
func (f *Fields) Object(name string, rs ...Rule) Opt[json.RawMessage] {
	raw, _, o := get[json.RawMessage](f, name, rs)
	if raw == nil {
		return o
	}
	if raw = f.inner(raw); raw[0] != '{' {
		f.Fail(name, "not_a_dict", fmt.Sprintf("Expected a dictionary of items but got type %q.", typeName(raw)))
		return o
	}
	o.Value = raw
	return o
}

// List reads a list, each item as JSON text. A repeated field of a form is a list
// of strings.
func (f *Fields) List(name string, rs ...Rule) Opt[[]json.RawMessage] {
	raw, r, o := get[[]json.RawMessage](f, name, rs)
	if raw == nil {
		return o
	}
	raw = f.inner(raw)
	switch {
	case raw[0] == '[':
		o.Value = jsontext.Elements(raw)
	case f.form:
		for _, s := range f.lists[name] {
			o.Value = append(o.Value, jsontext.AppendString(nil, s))
		}
	default:
		f.Fail(name, "not_a_list", fmt.Sprintf("Expected a list of items but got type %q.", typeName(raw)))
		return o
	}
	if r.hasMax && int64(len(o.Value)) > r.max {
		f.Fail(name, "max_length", fmt.Sprintf("Ensure this field has no more than %d elements.", r.max))
	}
	return o
}

// Strings reads a list of strings. The error of an invalid item has the index in
// its name.
func (f *Fields) Strings(name string, rs ...Rule) Opt[[]string] {
	list := f.List(name, rs...)
	o := Opt[[]string]{Set: list.Set, Null: list.Null}
	for i, raw := range list.Value {
		item := f.nest(fmt.Sprintf("%s__%d", name, i))
		item.raw[""] = raw
		o.Value = append(o.Value, item.String("", Blank).Value)
	}
	return o
}

// Ints reads a list of integers.
func (f *Fields) Ints(name string, rs ...Rule) Opt[[]int64] {
	list := f.List(name, rs...)
	o := Opt[[]int64]{Set: list.Set, Null: list.Null}
	for i, raw := range list.Value {
		item := f.nest(fmt.Sprintf("%s__%d", name, i))
		item.raw[""] = raw
		o.Value = append(o.Value, item.Int("").Value)
	}
	return o
}

// Sub reads an object as Fields. Their errors are named name__field. Without an
// object the Fields are empty.
func (f *Fields) Sub(name string, rs ...Rule) Opt[*Fields] {
	object := f.Object(name, rs...)
	o := Opt[*Fields]{Set: object.Set, Null: object.Null, Value: f.nest(name + "__")}
	if object.Value != nil {
		o.Value.addMembers(object.Value)
	}
	f.nested = append(f.nested, o.Value)
	return o
}

// Items reads a list of objects as Fields. Their errors are named
// name__index__field.
func (f *Fields) Items(name string, rs ...Rule) Opt[[]*Fields] {
	list := f.List(name, rs...)
	o := Opt[[]*Fields]{Set: list.Set, Null: list.Null}
	for i, raw := range list.Value {
		item := f.nest(fmt.Sprintf("%s__%d__", name, i))
		if raw = f.inner(raw); raw[0] == '{' {
			item.addMembers(raw)
		} else {
			f.Fail(fmt.Sprintf("%s__%d", name, i), "invalid_input", fmt.Sprintf("Invalid data. Expected a dictionary, but got %s.", typeName(raw)))
		}
		o.Value = append(o.Value, item)
	}
	f.nested = append(f.nested, o.Value...)
	return o
}

func (f *Fields) nest(path string) *Fields {
	return &Fields{raw: map[string]json.RawMessage{}, form: f.form, path: f.path + path, err: f.err, read: map[string]bool{}}
}

// inner returns the JSON inside a string of a form, where every value is a string.
func (f *Fields) inner(raw []byte) []byte {
	if !f.form || raw[0] != '"' {
		return raw
	}
	in := bytes.TrimSpace([]byte(unquote(raw)))
	if jsontext.Problem(in, body.MaxDepth) == "" {
		return in
	}
	return raw
}

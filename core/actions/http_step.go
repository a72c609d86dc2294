package actions

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fastjson"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/web"
)

// Limits of a definition.
const (
	maxSteps   = 100
	maxFilters = 100
)

// ReadSteps reads the field steps of a request: a list of steps. Unknown
// fields are ignored and white space is kept. Errors are recorded in f.
// Compile checks the conditions themselves.
func ReadSteps(f *web.Fields, rules ...web.Rule) web.Opt[[]actionmatch.Step] {
	items := f.Items("steps", append(rules, web.Max(maxSteps))...)
	out := web.Opt[[]actionmatch.Step]{Set: items.Set, Null: items.Null}
	for _, item := range items.Value {
		out.Value = append(out.Value, readStep(item))
	}
	return out
}

func readStep(f *web.Fields) actionmatch.Step {
	var s actionmatch.Step
	for _, field := range s.TextFields() {
		v := f.String(field.Name, web.Nullable, web.Blank, web.Untrimmed)
		if *field.Value = v.Value; !v.Set || v.Null {
			s.Null = append(s.Null, field.Name)
		}
	}
	properties := f.Any("properties", web.Nullable)
	if !properties.Set || properties.Null {
		s.Null = append(s.Null, "properties")
		return s
	}
	var ok bool
	if s.Properties, ok = readFilters(properties.Value); !ok {
		f.Fail("properties", "not_a_list", "Expected a list of property filters.")
	}
	if len(s.Properties) > maxFilters {
		f.Fail("properties", "max_length", "A step may have at most 100 property filters.")
	}
	return s
}

// readFilters reads property filters: a list, a single filter, or the form of
// older clients, an object of values by <property> or <property>__<operator>.
func readFilters(raw json.RawMessage) ([]json.RawMessage, bool) {
	v, err := fastjson.ParseBytes(raw)
	if err != nil {
		return nil, false
	}
	filters := []json.RawMessage{}
	switch v.Type() {
	case fastjson.TypeArray:
		for _, item := range v.GetArray() {
			filters = append(filters, jsontext.AppendJSON(nil, item))
		}
		return filters, true
	case fastjson.TypeObject:
		if isFilter(v) {
			return append(filters, jsontext.AppendJSON(nil, v)), true
		}
		v.GetObject().Visit(func(name []byte, value *fastjson.Value) {
			filters = append(filters, oldFilter(string(name), value))
		})
		return filters, true
	default:
		return nil, false
	}
}

// isFilter distinguishes a filter from an object of values: its key is a
// string, and it has a value, an operator or a type.
func isFilter(v *fastjson.Value) bool {
	key := v.Get("key")
	return key != nil && key.Type() == fastjson.TypeString &&
		(v.Exists("value") || v.Exists("operator") || v.Exists("type"))
}

func oldFilter(name string, value *fastjson.Value) json.RawMessage {
	operator := "exact"
	if key, suffix, found := cutLast(name, "__"); found {
		if _, known := match.Canonical(suffix); known && key != "" {
			name, operator = key, suffix
		}
	}
	raw := append([]byte(`{"key":`), jsontext.AppendString(nil, name)...)
	raw = append(append(raw, `,"value":`...), jsontext.AppendJSON(nil, value)...)
	raw = append(append(raw, `,"operator":`...), jsontext.AppendString(nil, operator)...)
	return append(raw, `,"type":"event"}`...)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

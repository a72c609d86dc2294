package sdk

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/units"
)

// decodeConfig fills the struct that into points to with an operator's config.
// It is strict: a key the struct does not have, a value of another type and a
// missing required field are diagnostics, each with the pointer of the place.
// A null is the same as a missing key. Fields not named keep their value, so
// what into held before are the defaults.
func decodeConfig(config *pluginv1.Config, into any) []*pluginv1.Diagnostic {
	d := &configDecoder{}
	tree, err := configTree(config)
	if err != nil {
		d.problem("", "the config is not a JSON object", err.Error())
		return d.problems
	}
	d.value("", tree, reflect.ValueOf(into).Elem(), field{})
	return d.problems
}

type configDecoder struct {
	problems []*pluginv1.Diagnostic
}

func (d *configDecoder) problem(pointer, summary, detail string) {
	d.problems = append(d.problems, &pluginv1.Diagnostic{
		Severity: pluginv1.Diagnostic_SEVERITY_ERROR, Pointer: pointer, Summary: summary, Detail: detail,
	})
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]()
)

// value decodes v into dst. Only the kinds that schemaOf describes are taken.
func (d *configDecoder) value(at string, v any, dst reflect.Value, f field) {
	if v == nil {
		return
	}
	if dst.Kind() == reflect.Pointer {
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		d.value(at, v, dst.Elem(), f)
		return
	}
	switch {
	case dst.Type() == durationType:
		d.duration(at, v, dst, f)
	case dst.Type() == rawType:
		d.raw(at, v, dst)
	case isText(dst):
		d.text(at, v, dst)
	case dst.Kind() == reflect.Struct:
		d.object(at, v, dst)
	case dst.Kind() == reflect.Map:
		d.table(at, v, dst)
	case dst.Kind() == reflect.Slice:
		d.list(at, v, dst)
	default:
		d.scalar(at, v, dst, f)
	}
}

func (d *configDecoder) object(at string, v any, dst reflect.Value) {
	tree, ok := v.(map[string]any)
	if !ok {
		d.wrong(at, "an object", v)
		return
	}
	fields := fieldsOf(dst.Type())
	for _, key := range sortedKeys(tree) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
		if i < 0 {
			d.problem(at+"/"+escape(key), "unknown key", nearest(key, fields))
			continue
		}
		d.value(at+"/"+escape(key), tree[key], dst.FieldByIndex(fields[i].index), fields[i])
	}
	for _, f := range fields {
		if f.required && tree[f.name] == nil {
			d.problem(at+"/"+escape(f.name), "required", f.doc)
		}
	}
}

func (d *configDecoder) table(at string, v any, dst reflect.Value) {
	tree, ok := v.(map[string]any)
	if !ok {
		d.wrong(at, "an object", v)
		return
	}
	out := reflect.MakeMapWithSize(dst.Type(), len(tree))
	for _, key := range sortedKeys(tree) {
		item := reflect.New(dst.Type().Elem()).Elem()
		d.value(at+"/"+escape(key), tree[key], item, field{})
		out.SetMapIndex(reflect.ValueOf(key).Convert(dst.Type().Key()), item)
	}
	dst.Set(out)
}

func (d *configDecoder) list(at string, v any, dst reflect.Value) {
	items, ok := v.([]any)
	if !ok {
		d.wrong(at, "a list", v)
		return
	}
	out := reflect.MakeSlice(dst.Type(), len(items), len(items))
	for i, item := range items {
		d.value(at+"/"+strconv.Itoa(i), item, out.Index(i), field{})
	}
	dst.Set(out)
}

func (d *configDecoder) duration(at string, v any, dst reflect.Value, f field) {
	text, _ := textOf(v)
	value, err := units.ParseDuration(text)
	if err != nil {
		d.wrong(at, units.DurationForms, v)
		return
	}
	dst.SetInt(int64(value))
	d.bounds(at, float64(value), f)
}

func (d *configDecoder) raw(at string, v any, dst reflect.Value) {
	text, err := json.Marshal(v)
	if err != nil {
		d.problem(at, "not a JSON value", err.Error())
		return
	}
	dst.SetBytes(text)
}

func (d *configDecoder) text(at string, v any, dst reflect.Value) {
	text, ok := textOf(v)
	if !ok {
		d.wrong(at, "a string", v)
		return
	}
	if err := dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		detail := err.Error()
		if _, secret := v.(secretText); secret {
			detail = ""
		}
		d.problem(at, "not a valid value", detail)
	}
}

// isText reports whether dst reads itself from text.
func isText(dst reflect.Value) bool {
	if !dst.CanAddr() {
		return false
	}
	_, ok := dst.Addr().Interface().(encoding.TextUnmarshaler)
	return ok
}

func textOf(v any) (string, bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case secretText:
		return string(t), true
	}
	return "", false
}

// wrong reports a value of another kind than the field's.
func (d *configDecoder) wrong(at, want string, v any) {
	got := "a value of another kind"
	switch t := v.(type) {
	case string:
		got = strconv.Quote(t)
	case json.Number:
		got = t.String()
	case bool:
		got = strconv.FormatBool(t)
	case []any:
		got = "a list"
	case map[string]any:
		got = "an object"
	case secretText:
		got = "a referenced value that is not one"
	}
	d.problem(at, "must be "+want, "got "+got)
}

// nearest suggests the known key with the smallest edit distance. The SDK is a module
// surface of its own and imports no package of the server, so it does not share the
// server's helper.
func nearest(key string, fields []field) string {
	best, distance := "", 4
	for _, f := range fields {
		if n := levenshtein.ComputeDistance(key, f.name); n < distance {
			best, distance = f.name, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

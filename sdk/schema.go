package sdk

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/guidonhq/guidon/sdk/units"
)

// field is one configurable field of a struct, as its tags describe it.
type field struct {
	name     string
	index    []int
	typ      reflect.Type
	doc      string
	required bool
	secret   bool
	format   string
	enum     []string
	min, max *bound
}

// fieldsOf lists the configurable fields of a struct type. A tag that cannot
// be read is the author's mistake and panics; Serve finds it at start.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct {
			for _, inner := range fieldsOf(sf.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		if !sf.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			panic(fmt.Sprintf("config field %s.%s has no json tag", t, sf.Name))
		}
		fields = append(fields, newField(sf, name))
	}
	return fields
}

// isSize reports whether the field is a number of bytes, which may be written as a text.
func (f field) isSize() bool {
	return units.IsSize(f.name) && (reflect.Zero(f.typ).CanInt() || reflect.Zero(f.typ).CanUint())
}

func newField(sf reflect.StructField, name string) field {
	f := field{
		name: name, index: sf.Index, typ: sf.Type,
		doc:      sf.Tag.Get("doc"),
		required: sf.Tag.Get("required") == "true",
		secret:   sf.Tag.Get("secret") == "true",
		format:   sf.Tag.Get("format"),
	}
	if list := sf.Tag.Get("enum"); list != "" {
		f.enum = strings.Split(list, "|")
	}
	for tag, dst := range map[string]**bound{"min": &f.min, "max": &f.max} {
		b, err := parseBound(sf.Tag.Get(tag), sf.Type)
		if err != nil {
			panic(fmt.Sprintf("config field %s, tag %s: %v", sf.Name, tag, err))
		}
		*dst = b
	}
	return f
}

// Schema returns the JSON Schema (draft 2020-12) of a plugin's config: the
// struct that config points to, whose present values are the defaults. It
// reads these tags:
//
//	json:"name"       the key; every exported field needs one ("-" leaves it out)
//	doc:"sentence"    what it is and why to change it
//	required:"true"   the operator must give it
//	enum:"a|b"        the strings allowed
//	min:"1" max:"9"   bounds of a number, or of a duration: min:"1s"
//	secret:"true"     never shown
//	format:"path"     a path on the machine of the server
//
// A path in an instance that is configured with the API lies in one directory of the server,
// and a relative one is relative to it. The same holds for the paths in the query of a
// format:"postgres-url", the URL of a PostgreSQL database.
//
// A whole number whose key ends in _bytes is a size: it may be written 64MiB or 20MB.
//
// Fields are strings, booleans, numbers, time.Duration (written "5s"), types
// that implement encoding.TextUnmarshaler, structs, maps with string keys,
// lists and pointers to these.
func Schema(config any) []byte {
	root := map[string]any{"type": "object", "additionalProperties": false}
	if config != nil {
		root = schemaOf(reflect.ValueOf(config).Elem())
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode config schema: %v", err))
	}
	return out
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// schemaOf describes v's type; v's content gives the defaults.
func schemaOf(v reflect.Value) map[string]any {
	t := v.Type()
	switch {
	case t == durationType:
		return map[string]any{"type": "string", "pattern": units.DurationPattern}
	case t == rawType || t.Kind() == reflect.Interface:
		return map[string]any{}
	case reflect.PointerTo(t).Implements(textType):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(reflect.New(t.Elem()).Elem())
	case reflect.Struct:
		return objectSchema(v)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(reflect.New(t.Elem()).Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(reflect.New(t.Elem()).Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	default:
		panic(fmt.Sprintf("config field of type %s cannot be configured", t))
	}
}

func objectSchema(v reflect.Value) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		s := schemaOf(value)
		describe(s, f, value)
		properties[f.name] = s
		if f.required {
			required = append(required, f.name)
		}
	}
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// describe adds the keywords from the tags and the default.
func describe(s map[string]any, f field, value reflect.Value) {
	if f.doc != "" {
		s["description"] = f.doc
	}
	if len(f.enum) > 0 {
		s["enum"] = f.enum
	}
	if f.isSize() {
		s["type"], s["pattern"] = []string{"integer", "string"}, units.SizePattern
	}
	if f.typ != durationType {
		if f.min != nil {
			s["minimum"] = f.min.value
		}
		if f.max != nil {
			s["maximum"] = f.max.value
		}
	}
	if f.format != "" {
		s["format"] = f.format
	}
	if f.secret {
		s["writeOnly"] = true
		return
	}
	if !f.required && value.Kind() != reflect.Struct {
		if d := plain(value); d != nil {
			s["default"] = d
		}
	}
}

// plain returns a default as the operator would write it, or nil for none.
func plain(v reflect.Value) any {
	if v.Type() == durationType {
		return time.Duration(v.Int()).String()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		if v.IsNil() {
			return nil
		}
	default: // cannot be nil
	}
	return v.Interface()
}

// defaultsOf returns the config with every default filled in, secrets left out.
func defaultsOf(v reflect.Value) map[string]any {
	out := map[string]any{}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		switch {
		case f.secret:
		case value.Kind() == reflect.Struct && value.Type() != durationType && !value.Addr().Type().Implements(textType):
			out[f.name] = defaultsOf(value)
		default:
			if d := plain(value); d != nil {
				out[f.name] = d
			}
		}
	}
	return out
}

// secretPointers lists the places of secrets; "*" stands for any key or index.
func secretPointers(t reflect.Type, at string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return secretPointers(t.Elem(), at)
	case reflect.Map, reflect.Slice:
		return secretPointers(t.Elem(), at+"/*")
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(textType) {
			return nil
		}
		var out []string
		for _, f := range fieldsOf(t) {
			place := at + "/" + escape(f.name)
			if f.secret {
				out = append(out, place)
			}
			out = append(out, secretPointers(f.typ, place)...)
		}
		return out
	default:
		return nil
	}
}

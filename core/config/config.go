// Package config converts the content of a configuration file, or values of the
// environment, to the types of the settings that they are for.
//
// A settings struct names its fields with the tag koanf. Decode walks the struct
// and the given values together, so that each error names its setting, and
// collects all errors instead of the first. It is strict where a silent
// conversion would change the meaning of a value:
//
//   - A duration has a unit: 5s, not 5. 0 is allowed without one.
//   - A setting whose name ends in _bytes takes a size with or without a unit:
//     20971520, 20MiB, 1.5GB.
//   - A whole number has no fraction and fits its type. 1e6 is a whole number.
//   - A text may be written as a whole number or as true and false, not as a
//     number with a fraction, whose digits YAML does not keep.
//
// References to secrets, ${env:NAME} and ${file:/path}, are resolved in every
// text by core/host/secret, and $${ is a literal ${. Resolved values never occur
// in an error, and Decode adds them to a secret.Redactor. Values of type
// map[string]any and fields with the tag expand:"false" keep their references:
// their consumer resolves them.
//
// The package does not know which settings exist, and it does not check ranges:
// the Validate methods of the sections do.
package config

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/text"
)

// Source describes where the values come from.
type Source struct {
	// Name returns the name of a setting, given as a dotted key, for errors. Nil
	// uses the key.
	Name func(key string) string
	// LookupEnv returns a variable for ${env:NAME}.
	LookupEnv func(name string) (string, bool)
	// Secrets receives every resolved reference.
	Secrets *secret.Redactor
}

// Decode sets the fields of the struct at into to the values of given, by the
// names in their koanf tags. Settings without a value keep theirs; a list or a
// map replaces the former one. The error joins one error for each wrong setting,
// in the order of their names; the other settings are set nevertheless.
func Decode(into any, given map[string]any, src Source) error {
	d := &decoder{src: src}
	d.decode("", given, reflect.ValueOf(into).Elem())
	return errors.Join(d.errs...)
}

// decoder collects the errors of one Decode.
type decoder struct {
	src  Source
	errs []error
}

// reject records an error of the setting key.
func (d *decoder) reject(key, format string, args ...any) {
	if d.src.Name != nil {
		key = d.src.Name(key)
	}
	d.errs = append(d.errs, fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...)))
}

// decode sets into to value. A nil value changes nothing.
func (d *decoder) decode(key string, value any, into reflect.Value) {
	if value == nil {
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		d.decodeStruct(key, value, into)
	case reflect.Slice:
		d.decodeList(key, value, into)
	case reflect.Map:
		d.decodeMap(key, value, into)
	case reflect.Interface:
		into.Set(reflect.ValueOf(value))
	default:
		d.decodeValue(key, value, into)
	}
}

func (d *decoder) decodeStruct(key string, value any, into reflect.Value) {
	fields := Fields(into.Type())
	given, ok := value.(map[string]any)
	if !ok {
		d.errs = append(d.errs, fmt.Errorf("%q holds settings such as %q and cannot be a value itself", key, Join(key, SortedKeys(fields)[0])))
		return
	}
	for _, name := range SortedKeys(given) {
		field, ok := fields[name]
		if !ok {
			near := text.Nearest(name, slices.Values(SortedKeys(fields)), math.MaxInt)
			d.errs = append(d.errs, fmt.Errorf("unknown key %q; did you mean %q?", Join(key, name), Join(key, near)))
			continue
		}
		target := into.FieldByIndex(field.Index)
		if field.Tag.Get("expand") == "false" {
			target.SetString(fmt.Sprint(given[name]))
			continue
		}
		d.decode(Join(key, name), given[name], target)
	}
}

// decodeList sets a list. A text is a list of texts, separated by commas, as the
// environment has it.
func (d *decoder) decodeList(key string, value any, into reflect.Value) {
	items, ok := value.([]any)
	if joined, isText := value.(string); !ok && isText && into.Type().Elem().Kind() == reflect.String {
		ok = true
		for item := range strings.SplitSeq(joined, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
	}
	if !ok {
		d.errs = append(d.errs, fmt.Errorf("%q must be a list", key))
		return
	}
	list := reflect.MakeSlice(into.Type(), len(items), len(items))
	for i, item := range items {
		d.decode(fmt.Sprintf("%s[%d]", key, i), item, list.Index(i))
	}
	into.Set(list)
}

func (d *decoder) decodeMap(key string, value any, into reflect.Value) {
	given, ok := value.(map[string]any)
	if !ok {
		d.reject(key, "must be a map of names to values")
		return
	}
	t := into.Type()
	if t.Elem().Kind() == reflect.Interface {
		into.Set(reflect.ValueOf(given).Convert(t))
		return
	}
	out := reflect.MakeMapWithSize(t, len(given))
	for _, name := range SortedKeys(given) {
		item := reflect.New(t.Elem()).Elem()
		if literal, ok := literalText(given[name]); ok && t.Elem().Kind() == reflect.String {
			item.SetString(literal) // resolved by the consumer, as the other maps
		} else {
			d.decode(Join(key, name), given[name], item)
		}
		out.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), item)
	}
	into.Set(out)
}

// decodeValue sets a single value. Its references are resolved before.
func (d *decoder) decodeValue(key string, value any, into reflect.Value) {
	written := fmt.Sprintf("%v", value)
	if s, ok := value.(string); ok {
		expanded, isSecret, err := secret.ExpandFrom(d.src.LookupEnv, s)
		if err != nil {
			d.reject(key, "%w", err)
			return
		}
		if isSecret {
			d.protect(expanded)
			for _, part := range secret.Parts(d.src.LookupEnv, s) {
				d.protect(part)
			}
			written = "the value of " + s
		} else {
			written = fmt.Sprintf("%q", expanded)
		}
		value = expanded
	}
	converted := reflect.New(into.Type()).Elem()
	if err := setValue(key, value, converted); err != nil {
		d.reject(key, "%s %w", written, err)
		return
	}
	into.Set(converted)
}

// protect adds a resolved value to the redactor, and the password in it if the
// value is a URL: an error may quote a part of the URL only.
func (d *decoder) protect(value string) {
	if d.src.Secrets == nil {
		return
	}
	d.src.Secrets.Add(value)
	if u, err := url.Parse(value); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok {
			d.src.Secrets.Add(password)
			d.src.Secrets.Add(strings.TrimPrefix(u.User.String(), url.User(u.User.Username()).String()+":"))
		}
	}
}

// Fields returns the settings of a struct by name, with the index of their field
// from t. Fields of squashed structs are settings of t.
func Fields(t reflect.Type) map[string]reflect.StructField {
	out := map[string]reflect.StructField{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		switch {
		case options == "squash":
			for n, inner := range Fields(f.Type) {
				inner.Index = append(slices.Clone(f.Index), inner.Index...)
				out[n] = inner
			}
		case name != "" && name != "-":
			out[name] = f
		}
	}
	return out
}

// Join returns the dotted key of the setting name in the section at; "" is the
// top.
func Join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// SortedKeys returns the keys of m in order.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

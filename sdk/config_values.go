package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/units"
)

// scalar decodes a string, a boolean or a number. A referenced value is text
// whatever the field is, so it is parsed.
func (d *configDecoder) scalar(at string, v any, dst reflect.Value, f field) {
	switch kind := dst.Kind(); {
	case kind == reflect.String:
		text, ok := textOf(v)
		if !ok {
			d.wrong(at, "a string", v)
			return
		}
		dst.SetString(text)
		d.choice(at, v, text, f)
	case kind == reflect.Bool:
		d.boolean(at, v, dst)
	case dst.CanInt(), dst.CanUint(), dst.CanFloat():
		d.number(at, v, dst, f)
	case kind == reflect.Interface && dst.NumMethod() == 0:
		if text, secret := v.(secretText); secret {
			v = string(text)
		}
		dst.Set(reflect.ValueOf(v))
	default:
		d.problem(at, "the plugin declares a field of a kind that cannot be configured", dst.Type().String())
	}
}

func (d *configDecoder) boolean(at string, v any, dst reflect.Value) {
	switch t := v.(type) {
	case bool:
		dst.SetBool(t)
		return
	case secretText:
		if value, err := strconv.ParseBool(string(t)); err == nil {
			dst.SetBool(value)
			return
		}
	}
	d.wrong(at, "true or false", v)
}

func (d *configDecoder) number(at string, v any, dst reflect.Value, f field) {
	var text string
	switch t := v.(type) {
	case json.Number:
		text = t.String()
	case secretText:
		text = string(t)
	case string:
		text = t
	}
	var err error
	var value float64
	if _, isNumber := v.(json.Number); !isNumber && f.isSize() {
		var n int64
		n, err = units.ParseSize(text)
		text = strconv.FormatInt(n, 10)
	} else if _, isText := v.(string); isText || text == "" {
		err = strconv.ErrSyntax
	}
	if err != nil {
		d.wrong(at, numberName(dst, f), v)
		return
	}
	switch bits := dst.Type().Bits(); {
	case dst.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, bits)
		dst.SetInt(n)
		value = float64(n)
	case dst.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, bits)
		dst.SetUint(n)
		value = float64(n)
	default:
		value, err = strconv.ParseFloat(text, bits)
		dst.SetFloat(value)
	}
	if err != nil {
		d.wrong(at, numberName(dst, f), v)
		return
	}
	d.bounds(at, value, f)
}

func numberName(dst reflect.Value, f field) string {
	switch {
	case f.isSize():
		return units.SizeForms
	case dst.CanInt():
		return "a whole number"
	case dst.CanUint():
		return "a whole number that is not negative"
	default:
		return "a number"
	}
}

// bounds applies the min and max tags; for a duration they are durations.
func (d *configDecoder) bounds(at string, value float64, f field) {
	if f.min != nil && value < f.min.value {
		d.problem(at, "must be at least "+f.min.text, "")
	}
	if f.max != nil && value > f.max.value {
		d.problem(at, "must be at most "+f.max.text, "")
	}
}

// choice applies the enum tag.
func (d *configDecoder) choice(at string, v any, text string, f field) {
	if len(f.enum) == 0 || slices.Contains(f.enum, text) {
		return
	}
	detail := "got " + strconv.Quote(text)
	if _, secret := v.(secretText); secret {
		detail = ""
	}
	d.problem(at, "must be one of "+strings.Join(f.enum, ", "), detail)
}

// bound is a min or max tag.
type bound struct {
	text  string
	value float64
}

// parseBound reads a min or max tag for a field of type t.
func parseBound(text string, t reflect.Type) (*bound, error) {
	if text == "" {
		return nil, nil
	}
	if t == durationType {
		value, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("read bound: %w", err)
		}
		return &bound{text: text, value: float64(value)}, nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("read bound: %w", err)
	}
	return &bound{text: text, value: value}, nil
}

// DecodeConfig fills the struct that config points to from JSON exactly as Serve
// does it for a server, for tests of a plugin. It is strict: an unknown key, a
// value of another type, one out of bounds and a missing required field are
// errors, joined, each a ConfigError with the pointer of its place. Fields that
// the text does not name keep their value.
func DecodeConfig(text []byte, config any) error {
	var problems []error
	for _, d := range decodeConfig(&pluginv1.Config{ConfigJson: text}, config) {
		message := d.GetSummary()
		if d.GetDetail() != "" {
			message += " (" + d.GetDetail() + ")"
		}
		problems = append(problems, &Error{
			Class: ClassConfig, Code: "config", Pointer: d.GetPointer(), Source: SourcePlugin, Message: d.GetPointer() + ": " + message,
		})
	}
	return errors.Join(problems...)
}

// secretText is a string that came from a reference. It may fill a field of
// any scalar type, and it is never quoted in a diagnostic.
type secretText string

// configTree parses the config and puts the secrets into their places.
func configTree(config *pluginv1.Config) (map[string]any, error) {
	tree := map[string]any{}
	if text := bytes.TrimSpace(config.GetConfigJson()); len(text) > 0 && string(text) != "null" {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&tree); err != nil {
			return nil, err
		}
		if _, err := dec.Token(); err != io.EOF {
			return nil, fmt.Errorf("more than one value")
		}
	}
	for pointer, value := range config.GetSecrets() {
		if err := setAt(tree, pointer, secretText(value)); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// setAt replaces the value that pointer names; the value must be there.
func setAt(tree map[string]any, pointer string, value any) error {
	var node any = tree
	parts := strings.Split(pointer, "/")
	for i, part := range parts[1:] {
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		last := i == len(parts)-2
		switch n := node.(type) {
		case map[string]any:
			if last {
				n[key] = value
			}
			node = n[key]
		case []any:
			at, err := strconv.Atoi(key)
			if err != nil || at < 0 || at >= len(n) {
				return fmt.Errorf("no such place: %s", pointer)
			}
			if last {
				n[at] = value
			}
			node = n[at]
		default:
			return fmt.Errorf("no such place: %s", pointer)
		}
	}
	return nil
}

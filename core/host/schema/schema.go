// Package schema checks the config of a plugin against the JSON Schema that the
// plugin publishes, before the config is sent or anything runs.
//
// Validation is santhosh-tekuri/jsonschema; the package adds messages in words that
// name the key and never a value, because any value may be a secret. Schemas
// refer to nothing outside themselves. A Store finds the schema of a plugin that
// does not run: compiled in for bundled plugins, kept from an earlier run of the
// same file for others.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk/units"
)

// maxSchema is the largest schema in bytes.
const maxSchema = 1 << 20

// Schema is a compiled config schema of a plugin.
type Schema struct{ compiled *jsonschema.Schema }

// Compile compiles a JSON Schema. It loads no other schemas.
func Compile(source []byte) (*Schema, error) {
	if len(source) > maxSchema {
		return nil, fmt.Errorf("the schema has %d bytes; %d are allowed", len(source), maxSchema)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if err := c.AddResource("plugin:config", doc); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	compiled, err := c.Compile("plugin:config")
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	return &Schema{compiled}, nil
}

// Check returns the problems of a config, none for a valid one or a nil Schema. The
// values of references are not checked here but by the plugin, and nothing is checked
// by a schema that refers to itself without an end.
func (s *Schema) Check(r *secret.Config) []wire.Diagnostic {
	if s == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.JSON))
	if err != nil {
		return []wire.Diagnostic{{Severity: "error", Summary: "the config is not a JSON object"}}
	}
	var wrong *jsonschema.ValidationError
	if err := s.compiled.Validate(dropNulls(doc)); !errors.As(err, &wrong) {
		return nil
	}
	var out []wire.Diagnostic
	for _, leaf := range leaves(wrong) {
		if _, endless := leaf.ErrorKind.(*kind.RefCycle); endless {
			return nil
		}
		if at := pointer(leaf.InstanceLocation); r.Values[at] == nil {
			out = append(out, s.describe(at, leaf)...)
		}
	}
	slices.SortStableFunc(out, func(a, b wire.Diagnostic) int { return strings.Compare(a.Pointer, b.Pointer) })
	return slices.CompactFunc(out, func(a, b wire.Diagnostic) bool { return a == b })
}

// dropNulls removes keys with the value null, which means the same as a missing key.
func dropNulls(node any) any {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			if value == nil {
				delete(n, key)
			} else {
				n[key] = dropNulls(value)
			}
		}
	case []any:
		for i := range n {
			n[i] = dropNulls(n[i])
		}
	}
	return node
}

// leaves returns the errors without a deeper cause.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}

// pointer returns path as a JSON Pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}

// describe converts one error to diagnostics without values.
func (s *Schema) describe(at string, e *jsonschema.ValidationError) []wire.Diagnostic {
	one := func(at, summary, detail string) wire.Diagnostic {
		return wire.Diagnostic{Severity: "error", Pointer: at, Summary: summary, Detail: detail}
	}
	var out []wire.Diagnostic
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, key := range k.Properties {
			out = append(out, one(at+pointer([]string{key}), "unknown key", s.nearest(e.InstanceLocation, key)))
		}
	case *kind.Required:
		for _, key := range k.Missing {
			out = append(out, one(at+pointer([]string{key}), "required", ""))
		}
	case *kind.Type:
		out = append(out, one(at, "must be "+s.forms(e.InstanceLocation, types(k.Want)), "got "+types([]string{k.Got})))
	case *kind.Enum:
		out = append(out, one(at, "must be one of "+list(k.Want), ""))
	case *kind.Minimum:
		limit, _ := k.Want.Float64()
		out = append(out, one(at, "must be at least "+strconv.FormatFloat(limit, 'g', -1, 64), ""))
	case *kind.Maximum:
		limit, _ := k.Want.Float64()
		out = append(out, one(at, "must be at most "+strconv.FormatFloat(limit, 'g', -1, 64), ""))
	case *kind.MinLength:
		out = append(out, one(at, fmt.Sprintf("must have at least %d characters", k.Want), ""))
	case *kind.MaxLength:
		out = append(out, one(at, fmt.Sprintf("must have at most %d characters", k.Want), ""))
	case *kind.Pattern:
		out = append(out, one(at, "must "+cmp.Or(prefixed("be ", unitForms(k.Want)), "match "+k.Want), ""))
	case *kind.Format:
		out = append(out, one(at, "must be a valid "+k.Want, ""))
	default:
		out = append(out, one(at, "is not what the plugin's schema allows", strings.Join(e.ErrorKind.KeywordPath(), "/")))
	}
	return out
}

// types returns JSON types in words.
func types(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		switch name {
		case "integer":
			words[i] = "a whole number"
		case "boolean":
			words[i] = "true or false"
		case "array":
			words[i] = "a list"
		case "object":
			words[i] = "an object"
		case "null":
			words[i] = "null"
		default:
			words[i] = "a " + name
		}
	}
	return strings.Join(words, " or ")
}

// unitForms returns the accepted forms of a duration or a size by the pattern of its
// schema, "" for another pattern.
func unitForms(pattern string) string {
	return map[string]string{units.DurationPattern: units.DurationForms, units.SizePattern: units.SizeForms}[pattern]
}

// prefixed returns "" for an empty text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// forms returns the accepted forms of the option at path, and otherwise for an option
// that is neither a duration nor a size.
func (s *Schema) forms(path []string, otherwise string) string {
	node := s.at(path)
	if node == nil || node.Pattern == nil {
		return otherwise
	}
	return cmp.Or(unitForms(node.Pattern.String()), otherwise)
}

// at returns the schema of the option at path, or nil.
func (s *Schema) at(path []string) *jsonschema.Schema {
	node := s.compiled
	for _, step := range path {
		if node = node.Properties[step]; node == nil {
			return nil
		}
	}
	return node
}

// nearest suggests a known key in place of an unknown one.
func (s *Schema) nearest(path []string, key string) string {
	node := s.at(path)
	if node == nil {
		return ""
	}
	best := text.Nearest(key, maps.Keys(node.Properties), 2)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// list returns the values of an enum in words.
func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		if s, ok := v.(string); ok {
			words[i] = s
		} else if raw, err := json.Marshal(v); err == nil {
			words[i] = string(raw)
		}
	}
	return strings.Join(words, ", ")
}

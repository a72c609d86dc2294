package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxSchema bounds what a plugin may say of its config.
const maxSchema = 1 << 20

// configSchema checks configs of a plugin before they are sent to it. It never
// shows a value: what it says goes to logs and answers, and any value may be a
// secret.
type configSchema struct{ compiled *jsonschema.Schema }

// compileSchema reads a JSON Schema. Nothing is loaded for it from elsewhere.
func compileSchema(text []byte) (*configSchema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("the schema has %d bytes; %d are allowed", len(text), maxSchema)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
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
	return &configSchema{compiled}, nil
}

// check says what is wrong with a config, nothing when it is right. What stands
// for a reference is the plugin's own to check.
func (s *configSchema) check(r *resolved) []Diagnostic {
	if s == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.json))
	if err != nil {
		return []Diagnostic{{Severity: "error", Summary: "the config is not a JSON object"}}
	}
	var wrong *jsonschema.ValidationError
	if err := s.compiled.Validate(present(doc)); !errors.As(err, &wrong) {
		return nil
	}
	var out []Diagnostic
	for _, leaf := range leaves(wrong) {
		if at := pointer(leaf.InstanceLocation); r.secrets[at] == nil {
			out = append(out, s.describe(at, leaf)...)
		}
	}
	slices.SortStableFunc(out, func(a, b Diagnostic) int { return strings.Compare(a.Pointer, b.Pointer) })
	return slices.CompactFunc(out, func(a, b Diagnostic) bool { return a == b })
}

// present leaves out what is null: that is the same as a missing key.
func present(node any) any {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			if value == nil {
				delete(n, key)
			} else {
				n[key] = present(value)
			}
		}
	case []any:
		for i := range n {
			n[i] = present(n[i])
		}
	}
	return node
}

// leaves are the errors that have no deeper cause.
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

// pointer is a JSON Pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}

// describe is one error in our own words.
func (s *configSchema) describe(at string, e *jsonschema.ValidationError) []Diagnostic {
	one := func(at, summary, detail string) Diagnostic {
		return Diagnostic{Severity: "error", Pointer: at, Summary: summary, Detail: detail}
	}
	var out []Diagnostic
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
		out = append(out, one(at, "must be "+types(k.Want), "got "+types([]string{k.Got})))
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
		out = append(out, one(at, "must match "+k.Want, ""))
	case *kind.Format:
		out = append(out, one(at, "must be a valid "+k.Want, ""))
	default:
		out = append(out, one(at, "is not what the plugin's schema allows", strings.Join(e.ErrorKind.KeywordPath(), "/")))
	}
	return out
}

// types says in words which JSON types are meant.
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

// nearest is the known key that may have been meant.
func (s *configSchema) nearest(path []string, key string) string {
	node := s.compiled
	for _, step := range path {
		if node = node.Properties[step]; node == nil {
			return ""
		}
	}
	best, distance := "", 3
	for known := range node.Properties {
		if n := levenshtein.ComputeDistance(key, known); n < distance || n == distance && known < best {
			best, distance = known, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// list writes the values of an enum.
func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		if text, ok := v.(string); ok {
			words[i] = text
		} else if raw, err := json.Marshal(v); err == nil {
			words[i] = string(raw)
		}
	}
	return strings.Join(words, ", ")
}

// schemaOf returns what is known of a plugin's config before it runs: a bundled
// plugin's schema is compiled in, a third party's is kept from an earlier run of
// the very same file. It is nil when nothing is known.
func (h *Host) schemaOf(c settings.Instance, argv []string) *configSchema {
	var text []byte
	if c.External() {
		text, _ = os.ReadFile(h.schemaFile(c, argv[0]))
	} else if h.deps.Schema != nil && !c.Attached() {
		text = h.deps.Schema(c.Use, c.Kind)
	}
	if len(text) == 0 {
		return nil
	}
	s, err := compileSchema(text)
	if err != nil {
		return nil // it is looked at again when the plugin runs
	}
	return s
}

// schemaFile is where the schema of a verified copy is kept. The copy is named
// by its checksum.
func (h *Host) schemaFile(c settings.Instance, copied string) string {
	return filepath.Join(h.deps.DataDir, "plugins", "schema", filepath.Base(copied)+"."+c.Kind+".json")
}

// keepSchema remembers a third party's schema for the next time.
func (h *Host) keepSchema(c settings.Instance, argv []string, text []byte) {
	if !c.External() || len(text) == 0 {
		return
	}
	path := h.schemaFile(c, argv[0])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return
	}
	part := path + ".part"
	if os.WriteFile(part, text, 0o600) == nil {
		_ = os.Rename(part, path)
	}
}

// unfit is a config that the plugin's schema does not allow.
func unfit(problems []Diagnostic) error {
	if len(problems) == 0 {
		return nil
	}
	return &failure{state: StateMisconfigured, reason: "config", message: sentence(problems), diagnostics: problems}
}

package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/sdk/units"
)

// Option is one option of a config.
type Option struct {
	// Name is the path of the option: names of nested options are joined with dots, []
	// marks the elements of a list.
	Name string `json:"name"`
	// Type is the type in words, such as string, duration, size or list of string.
	Type     string `json:"type"`
	Required bool   `json:"required"`
	// Default is the JSON text of the default; nil without one.
	Default json.RawMessage `json:"default,omitempty"`
	// Enum has the allowed values; nil allows all.
	Enum []string `json:"enum,omitempty"`
	// Minimum and Maximum are the bounds of a number; "" is none.
	Minimum json.Number `json:"minimum,omitempty"`
	Maximum json.Number `json:"maximum,omitempty"`
	Secret  bool        `json:"secret,omitempty"`
	Doc     string      `json:"doc,omitempty"`
}

// node is the part of a JSON Schema that describes an option.
type node struct {
	Type        any               `json:"type"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Enum        []json.RawMessage `json:"enum"`
	Minimum     json.Number       `json:"minimum"`
	Maximum     json.Number       `json:"maximum"`
	Pattern     string            `json:"pattern"`
	Format      string            `json:"format"`
	WriteOnly   bool              `json:"writeOnly"`
	Required    []string          `json:"required"`
	Properties  map[string]*node  `json:"properties"`
	Items       *node             `json:"items"`
}

// Options returns the options of a JSON Schema, sorted by name, the required ones first.
// An option without a name in `properties` is not listed; a schema that cannot be read
// has none.
func Options(schema []byte) []Option {
	var root node
	if json.Unmarshal(schema, &root) != nil {
		return []Option{}
	}
	return root.options("", []Option{})
}

func (n *node) options(path string, out []Option) []Option {
	names := slices.SortedFunc(maps.Keys(n.Properties), func(a, b string) int {
		if ra, rb := slices.Contains(n.Required, a), slices.Contains(n.Required, b); ra != rb {
			return map[bool]int{true: -1, false: 1}[ra]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		f := n.Properties[name]
		if f == nil || len(out) >= maxItems {
			continue
		}
		o := Option{
			Name: shorten(path + name), Type: f.kind(), Required: slices.Contains(n.Required, name), Default: f.Default,
			Minimum: f.Minimum, Maximum: f.Maximum, Secret: f.WriteOnly, Doc: shorten(f.Description),
		}
		for _, v := range f.Enum {
			o.Enum = append(o.Enum, strings.Trim(string(v), `"`))
		}
		out = f.options(path+name+".", append(out, o))
		if f.Items != nil {
			out = f.Items.options(path+name+"[].", out)
		}
	}
	return out
}

// kind returns the type in words.
func (n *node) kind() string {
	switch {
	case n.Pattern == units.DurationPattern:
		return "duration"
	case n.Pattern == units.SizePattern:
		return "size"
	case n.Format == "path":
		return "path"
	case n.Items != nil:
		return "list of " + n.Items.kind()
	case n.Type == nil:
		return "anything"
	}
	if types, ok := n.Type.([]any); ok {
		words := make([]string, len(types))
		for i, t := range types {
			words[i] = fmt.Sprint(t)
		}
		return strings.Join(words, " or ")
	}
	return fmt.Sprint(n.Type)
}

package apitest

import (
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
)

// undeclared lists the names in v, with their paths, that no part of the schema
// declares. A schema without declared names, or with additionalProperties, allows
// every name.
func undeclared(schema *openapi3.SchemaRef, v any, at string) []string {
	parts := partsOf(schema, v)
	switch v := v.(type) {
	case map[string]any:
		return undeclaredOf(parts, v, at)
	case []any:
		var out []string
		for i, item := range v {
			for _, p := range parts {
				if p.Items != nil {
					out = append(out, undeclared(p.Items, item, at+"/"+strconv.Itoa(i))...)
				}
			}
		}
		return out
	}
	return nil
}

func undeclaredOf(parts []*openapi3.Schema, object map[string]any, at string) []string {
	free := !slices.ContainsFunc(parts, func(p *openapi3.Schema) bool { return len(p.Properties) > 0 })
	var out []string
	for name, v := range object {
		mentioned := free
		for _, p := range parts {
			s := p.Properties[name]
			if s == nil {
				s = p.AdditionalProperties.Schema
			}
			if s != nil {
				mentioned = true
				out = append(out, undeclared(s, v, at+"/"+name)...)
			}
			mentioned = mentioned || (p.AdditionalProperties.Has != nil && *p.AdditionalProperties.Has)
		}
		if !mentioned {
			out = append(out, at+"/"+name)
		}
	}
	return out
}

// partsOf returns the schemas that apply to v: the schema, its allOf parts, and the
// alternatives that v matches.
func partsOf(schema *openapi3.SchemaRef, v any) []*openapi3.Schema {
	out := []*openapi3.Schema{schema.Value}
	for _, part := range schema.Value.AllOf {
		out = append(out, partsOf(part, v)...)
	}
	for _, one := range slices.Concat(schema.Value.OneOf, schema.Value.AnyOf) {
		if accepts(one, v) == nil {
			out = append(out, partsOf(one, v)...)
		}
	}
	return out
}

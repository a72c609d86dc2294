package schema_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/host/schema"
	"github.com/guidonhq/guidon/core/host/secret"
)

// TestSchemasThatReferToThemselves checks that the fault of a schema is not reported
// as one of the config.
func TestSchemasThatReferToThemselves(t *testing.T) {
	for source, problems := range map[string]int{
		`{"$ref":"#"}`: 0,
		`{"anyOf":[{"type":"string"},{"$ref":"#"}]}`:                       0,
		`{"properties":{"a":{"$ref":"#"},"b":{"type":"string"}}}`:          1,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":true}}`: 0,
	} {
		s, err := schema.Compile([]byte(source))
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if found := s.Check(&secret.Config{JSON: []byte(`{"a":{"b":7}}`)}); len(found) != problems {
			t.Errorf("%s: %+v", source, found)
		}
	}
}

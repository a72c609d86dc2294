package operators

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/guidonhq/guidon/core/host/wire"
)

// checkSchema checks a value against an operator's schema. A missing or invalid schema
// accepts every value.
func checkSchema(schema, value json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil //nolint:nilerr // the plugin checks the value itself
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // loads no other schemas
	if err := c.AddResource("value.json", doc); err != nil {
		return nil //nolint:nilerr // as above
	}
	compiled, err := c.Compile("value.json")
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	given, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return invalidValue("must be valid JSON")
	}
	problem, ok := errors.AsType[*jsonschema.ValidationError](compiled.Validate(given))
	if !ok {
		return nil
	}
	var problems []wire.Diagnostic
	for _, unit := range problem.BasicOutput().Errors {
		if unit.Error != nil {
			problems = append(problems, wire.Diagnostic{Pointer: unit.InstanceLocation, Summary: unit.Error.String()})
		}
	}
	return invalidValue(problemText(problems))
}

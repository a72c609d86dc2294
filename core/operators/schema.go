package operators

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// conforms checks a value against the schema that an operator states; nil takes
// anything, and so does a schema that cannot be used.
func conforms(schema, value json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil //nolint:nilerr // the plugin itself will say what is wrong
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is loaded from anywhere
	if err := c.AddResource("value.json", doc); err != nil {
		return nil //nolint:nilerr // likewise
	}
	compiled, err := c.Compile("value.json")
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	given, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return invalid("must be valid JSON")
	}
	problem, ok := errors.AsType[*jsonschema.ValidationError](compiled.Validate(given))
	if !ok {
		return nil
	}
	var problems []Problem
	for _, unit := range problem.BasicOutput().Errors {
		if unit.Error != nil {
			problems = append(problems, Problem{Pointer: unit.InstanceLocation, Summary: unit.Error.String()})
		}
	}
	return invalid(told(problems))
}

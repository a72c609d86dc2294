package sdk_test

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// age is a whole matcher: it tells how long ago a property's time was.
type age struct{}

func (age) Open(context.Context, sdk.OpenRequest) (sdk.MatcherProperties, error) {
	return sdk.MatcherProperties{}, nil
}

func (age) Operators() []sdk.Operator {
	return []sdk.Operator{{
		ID: "age/older", Label: "is older than", Doc: "The property is a time that is longer ago than the value, a duration such as 72h.",
		ValueSchema: []byte(`{"type": "string"}`), PropertyTypes: []string{"string"},
		Missing: sdk.MissingNoMatch, Purity: sdk.TimeDependent, CacheTTL: time.Minute,
		Examples: []sdk.OperatorExample{
			{Value: []byte(`"24h"`), Property: []byte(`"2026-01-01T00:00:00Z"`), Now: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), Result: sdk.Match},
			{Value: []byte(`"72h"`), Property: []byte(`"2026-01-01T00:00:00Z"`), Now: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), Result: sdk.NoMatch},
		},
	}}
}

func (age) Compile(_ string, value json.RawMessage) (sdk.Program, error) {
	var text string
	_ = json.Unmarshal(value, &text) // a string: it has passed the schema
	limit, err := time.ParseDuration(text)
	if err != nil {
		return nil, sdk.ValueError("", err) // shown when the filter is saved
	}
	return sdk.ProgramFunc(func(in *sdk.Input) sdk.Verdict {
		text, _ := in.String()
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return in.Fail(sdk.Permanent(err))
		}
		return sdk.Matches(in.Now.Sub(at) > limit)
	}), nil
}

func (age) Close(context.Context) error { return nil }

// A matcher in about thirty lines.
func Example_matcher() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		sdk.Serve(sdk.Plugin{Name: "acme/age", Version: "1.0.0", Matcher: func() sdk.Matcher { return age{} }})
	}
}

// Package cidr is a matcher that tests whether an IP address lies in networks, such
// as those of an office, a data centre or a partner.
package cidr

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "cidr", Version: "1.0.0",
		Summary: "Tells whether an IP address lies in one of several networks.",
		Matcher: func() sdk.Matcher { return Matcher{} },
	}
}

// Matcher offers the operators.
type Matcher struct{}

var _ sdk.Matcher = Matcher{}

// Open has nothing to load.
func (Matcher) Open(context.Context, sdk.OpenRequest) (sdk.MatcherProperties, error) {
	return sdk.MatcherProperties{}, nil
}

const valueSchema = `{
  "anyOf": [
    {"type": "string", "minLength": 1},
    {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 10000}
  ]
}`

// Operators lists both.
func (Matcher) Operators() []sdk.Operator {
	example := func(value, property string, result sdk.Verdict) sdk.OperatorExample {
		return sdk.OperatorExample{Value: json.RawMessage(value), Property: json.RawMessage(property), Result: result}
	}
	contains := sdk.Operator{
		ID: "cidr/contains", Version: "1", Label: "is in network",
		Doc: "The property is an IP address in one of the networks of the value: a network such as 10.0.0.0/8 or 2001:db8::/32, a single " +
			"address, or a list of those. An IPv4 address that is written as IPv6 (::ffff:10.1.2.3) is the IPv4 address. A port and a zone " +
			"are ignored. Of a list of addresses, one is enough. What is not an address is in no network.",
		ValueSchema: json.RawMessage(valueSchema), PropertyTypes: []string{"string", "array"},
		Missing: sdk.MissingNoMatch, Purity: sdk.Pure, Cost: 200 * time.Nanosecond,
		Examples: []sdk.OperatorExample{
			example(`"10.0.0.0/8"`, `"10.1.2.3"`, sdk.Match),
			example(`["10.0.0.0/8", "2001:db8::/32"]`, `"2001:db8::7"`, sdk.Match),
			example(`"10.0.0.0/8"`, `"::ffff:10.1.2.3"`, sdk.Match),
			example(`"10.0.0.0/8"`, `"11.0.0.1"`, sdk.NoMatch),
			example(`"10.0.0.0/8"`, `"somewhere"`, sdk.NoMatch),
		},
	}
	outside := contains
	outside.ID, outside.Label, outside.Missing = "cidr/not_contains", "is not in network", sdk.MissingMatches
	outside.Doc = "The opposite of cidr/contains: also true of a property that is missing or not an address."
	outside.Examples = []sdk.OperatorExample{
		example(`"10.0.0.0/8"`, `"11.0.0.1"`, sdk.Match),
		example(`"10.0.0.0/8"`, `"10.1.2.3"`, sdk.NoMatch),
	}
	return []sdk.Operator{contains, outside}
}

// Compile reads the networks.
func (Matcher) Compile(operator string, value json.RawMessage) (sdk.Program, error) {
	networks, err := read(value)
	if err != nil {
		return nil, err
	}
	want := operator == "cidr/contains"
	return sdk.ProgramFunc(func(in *sdk.Input) sdk.Verdict {
		return sdk.Matches(networks.holdsAny(in) == want)
	}), nil
}

// read reads a network or a list of them.
func read(value json.RawMessage) (set, error) {
	var one string
	if json.Unmarshal(value, &one) == nil {
		r, err := network(one)
		if err != nil {
			return nil, sdk.ValueError("", err)
		}
		return set{r}, nil
	}
	var list []string
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, sdk.ValueError("", fmt.Errorf("want a network or a list of networks"))
	}
	ranges := make(set, len(list))
	for i, text := range list {
		r, err := network(text)
		if err != nil {
			return nil, sdk.ValueError(fmt.Sprintf("/%d", i), err)
		}
		ranges[i] = r
	}
	return ranges.tidy(), nil
}

// Close has nothing to release.
func (Matcher) Close(context.Context) error { return nil }

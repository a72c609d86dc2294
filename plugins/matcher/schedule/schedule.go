// Package schedule is a matcher about times of the week: is it office hours now,
// here or where the person is; did something happen on a weekend.
package schedule

import (
	"context"
	"encoding/json"
	"time"
	_ "time/tzdata" // zones are the same on every machine

	"github.com/guidonhq/guidon/sdk"
)

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "schedule", Version: "1.0.0",
		Summary: "Tells whether a time, or now, lies in windows of the week, in any time zone.",
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
  "type": "object",
  "additionalProperties": false,
  "minProperties": 1,
  "properties": {
    "time_zone": {"type": "string", "minLength": 1},
    "time_zone_of": {"type": "string", "minLength": 1, "maxLength": 400},
    "since": {"type": "string", "minLength": 1},
    "until": {"type": "string", "minLength": 1},
    "windows": {
      "type": "array", "minItems": 1, "maxItems": 100,
      "items": {
        "type": "object",
        "additionalProperties": false,
        "properties": {
          "days": {"type": "array", "minItems": 1, "maxItems": 14, "items": {"type": "string"}},
          "from": {"type": "string"},
          "to": {"type": "string"}
        }
      }
    }
  }
}`

const aboutValue = "The value says when: windows, a list of days (mon to sun, or spans such as mon-fri; all when there are none) and of times from " +
	"and to (15:04; to is not part of it, and one that is not after from is on the next day); since and until, dates with times that bound it " +
	"all; time_zone, such as Europe/Berlin, UTC when there is none."

// Operators lists both.
func (Matcher) Operators() []sdk.Operator {
	office := json.RawMessage(`{"time_zone": "Europe/Berlin", "windows": [{"days": ["mon-fri"], "from": "09:00", "to": "17:00"}]}`)
	monday, saturday := time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC), time.Date(2026, 3, 7, 8, 30, 0, 0, time.UTC)
	return []sdk.Operator{
		{
			ID: "schedule/now", Version: "1", Label: "it is now within schedule",
			Doc: "It is now within the schedule, whatever the filter's own property is. " + aboutValue + " time_zone_of names a property with the " +
				"time zone of the person, which goes before time_zone where it is one.",
			ValueSchema: json.RawMessage(valueSchema),
			Missing:     sdk.MissingNoMatch, Purity: sdk.TimeDependent, CacheTTL: time.Minute, Cost: 500 * time.Nanosecond,
			Examples: []sdk.OperatorExample{
				{Value: office, Property: json.RawMessage(`{}`), Now: monday, Result: sdk.Match},
				{Value: office, Property: json.RawMessage(`{}`), Now: saturday, Result: sdk.NoMatch},
			},
		},
		{
			ID: "schedule/contains", Version: "1", Label: "is a time within schedule",
			Doc: "The property is a time within the schedule: a date with a time as RFC 3339 writes it, or seconds since 1970. " + aboutValue +
				" What is not a time is in no schedule.",
			ValueSchema: json.RawMessage(valueSchema), PropertyTypes: []string{"string", "number"},
			Missing: sdk.MissingNoMatch, Purity: sdk.Pure, Cost: 500 * time.Nanosecond,
			Examples: []sdk.OperatorExample{
				{Value: office, Property: json.RawMessage(`"2026-03-02T08:30:00Z"`), Result: sdk.Match},
				{Value: office, Property: json.RawMessage(`"2026-03-02T07:30:00Z"`), Result: sdk.NoMatch},
				{Value: office, Property: json.RawMessage(`"soon"`), Result: sdk.NoMatch},
			},
		},
	}
}

// Compile reads a schedule.
func (Matcher) Compile(operator string, value json.RawMessage) (sdk.Program, error) {
	p, err := read(value)
	if err != nil {
		return nil, err
	}
	if operator == "schedule/now" {
		return &now{p}, nil
	}
	if p.zoneOf != "" {
		return nil, sdk.ValueError("/time_zone_of", errOnlyNow)
	}
	return sdk.ProgramFunc(func(in *sdk.Input) sdk.Verdict {
		at, ok := instant(in)
		return sdk.Matches(ok && p.holds(at, p.zone))
	}), nil
}

// now is a program that does not look at the filter's own property.
type now struct{ *plan }

// Reads names the property with the time zone. A program must name some, or it
// is given the filter's own: the distinct id is always available.
func (n *now) Reads() []string {
	if n.zoneOf == "" {
		return []string{"distinct_id"}
	}
	return []string{n.zoneOf}
}

// Match reports whether the current time is in the schedule.
func (n *now) Match(in *sdk.Input) sdk.Verdict {
	zone := n.zone
	if n.zoneOf != "" {
		raw, _ := in.Property(n.zoneOf)
		var name string
		if json.Unmarshal(raw, &name) == nil {
			if own, err := location(name); err == nil {
				zone = own
			}
		}
	}
	return sdk.Matches(n.holds(in.Now, zone))
}

// instant reads a property as a time.
func instant(in *sdk.Input) (time.Time, bool) {
	if seconds, ok := in.Number(); ok && seconds > -1e11 && seconds < 1e11 {
		whole := int64(seconds)
		return time.Unix(whole, int64((seconds-float64(whole))*1e9)), true
	}
	text, _ := in.String()
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// Close has nothing to release.
func (Matcher) Close(context.Context) error { return nil }

// Package geo is a matcher about places: whether a point is near another one, in
// a box, in a polygon, or in a country. The borders of countries are data that
// the operator brings, in a file.
package geo

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "geo", Version: "1.0.0",
		Summary: "Tells whether a place is near another one, in a box, in a polygon, or in a country.",
		Matcher: func() sdk.Matcher { return New() },
	}
}

// Matcher offers the operators.
type Matcher struct {
	cfg   config
	world *world // nil without borders
}

var (
	_ sdk.Matcher       = (*Matcher)(nil)
	_ sdk.Configured    = (*Matcher)(nil)
	_ sdk.DataVersioner = (*Matcher)(nil)
)

// New returns a matcher that is not open, its config at the defaults.
func New() *Matcher { return &Matcher{cfg: config{Code: "ISO_A2_EH"}} }

// Config is where the SDK puts the operator's config.
func (m *Matcher) Config() any { return &m.cfg }

// Open loads the borders, when there are some.
func (m *Matcher) Open(context.Context, sdk.OpenRequest) (p sdk.MatcherProperties, err error) {
	if m.cfg.Borders != "" {
		m.world, err = load(m.cfg.Borders, m.cfg.Code)
	}
	return p, sdk.ConfigError("/borders", err)
}

// DataVersion names the borders.
func (m *Matcher) DataVersion() string {
	if m.world == nil {
		return ""
	}
	return m.world.version
}

const (
	degrees   = `{"type": "number", "minimum": -90, "maximum": 90}`
	longitude = `{"type": "number", "minimum": -180, "maximum": 180}`
	point     = `{"type": "object", "additionalProperties": false, "required": ["lat", "lng"], "properties": {"lat": ` + degrees + `, "lng": ` + longitude + `}}`
	of        = `"of": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string", "minLength": 1, "maxLength": 400}}`

	nearSchema = `{"type": "object", "additionalProperties": false, "required": ["lat", "lng", "km"], "properties": {"lat": ` + degrees +
		`, "lng": ` + longitude + `, "km": {"type": "number", "exclusiveMinimum": 0, "maximum": 20100}, ` + of + `}}`
	boxSchema = `{"type": "object", "additionalProperties": false, "required": ["south", "west", "north", "east"], "properties": {"south": ` + degrees +
		`, "west": ` + longitude + `, "north": ` + degrees + `, "east": ` + longitude + `, ` + of + `}}`
	polygonSchema = `{"type": "object", "additionalProperties": false, "required": ["points"], "properties": {"points": {"type": "array", "minItems": 3, ` +
		`"maxItems": 1000, "items": ` + point + `}, ` + of + `}}`
	code          = `{"type": "string", "minLength": 2, "maxLength": 10}`
	codes         = `{"type": "array", "minItems": 1, "maxItems": 300, "items": ` + code + `}`
	countrySchema = `{"anyOf": [` + code + `, ` + codes + `, {"type": "object", "additionalProperties": false, "required": ["codes"], "properties": {"codes": ` +
		codes + `, ` + of + `}}]}`

	aboutPoint = " The point is the property: an object with lat and lng (or latitude and longitude), or a text such as \"52.52,13.41\"; or, when " +
		"the value has `of`, the two properties it names, latitude first, such as [\"$geoip_latitude\", \"$geoip_longitude\"]. What is not a " +
		"point is nowhere."
)

// Operators lists those about areas and, with borders, the one about countries.
func (m *Matcher) Operators() []sdk.Operator {
	op := func(name, label, doc, schema string, cost time.Duration, examples ...sdk.OperatorExample) sdk.Operator {
		return sdk.Operator{
			ID: "geo/" + name, Version: "1", Label: label, Doc: doc + aboutPoint,
			ValueSchema: json.RawMessage(schema), PropertyTypes: []string{"object", "string"},
			Missing: sdk.MissingNoMatch, Purity: sdk.Pure, Cost: cost, Examples: examples,
		}
	}
	example := func(value, property string, result sdk.Verdict) sdk.OperatorExample {
		return sdk.OperatorExample{Value: json.RawMessage(value), Property: json.RawMessage(property), Result: result}
	}
	operators := []sdk.Operator{
		op("near", "is near place", "The point is at most km away from lat and lng, over the surface of the earth.", nearSchema, time.Microsecond,
			example(`{"lat": 52.52, "lng": 13.41, "km": 50}`, `{"lat": 52.39, "lng": 13.06}`, sdk.Match),
			example(`{"lat": 52.52, "lng": 13.41, "km": 50}`, `"48.14,11.58"`, sdk.NoMatch),
			example(`{"lat": 52.52, "lng": 13.41, "km": 50, "of": ["$geoip_latitude", "$geoip_longitude"]}`,
				`{"$geoip_latitude": 52.39, "$geoip_longitude": 13.06}`, sdk.Match),
		),
		op("in_box", "is in box", "The point is between south and north and, going eastwards, between west and east: a box may lie across the "+
			"180th meridian. Its edges are part of it.", boxSchema, time.Microsecond,
			example(`{"south": 47, "west": 5, "north": 55, "east": 15}`, `"52.52,13.41"`, sdk.Match),
			example(`{"south": 47, "west": 5, "north": 55, "east": 15}`, `"48.85,2.35"`, sdk.NoMatch),
		),
		op("in_polygon", "is in polygon", "The point is inside the polygon with these corners, whose sides are straight on a flat map; it may lie "+
			"across the 180th meridian when no side is wider than half the earth, but not around a pole.", polygonSchema, 5*time.Microsecond,
			example(`{"points": [{"lat": 47, "lng": 5}, {"lat": 47, "lng": 15}, {"lat": 55, "lng": 10}]}`, `"49,10"`, sdk.Match),
			example(`{"points": [{"lat": 47, "lng": 5}, {"lat": 47, "lng": 15}, {"lat": 55, "lng": 10}]}`, `"54,6"`, sdk.NoMatch),
		),
	}
	if m.world == nil {
		return operators
	}
	country := op("country", "is in country", "The point is within the borders of the country with this code, or of one of them.", countrySchema, 20*time.Microsecond)
	country.Purity = sdk.DataDependent
	return append(operators, country)
}

// Compile reads an area.
func (m *Matcher) Compile(operator string, value json.RawMessage) (sdk.Program, error) {
	inside, of, err := m.read(operator, value)
	if err != nil {
		return nil, err
	}
	if of != nil {
		return &pair{inside, of}, nil
	}
	return sdk.ProgramFunc(func(in *sdk.Input) sdk.Verdict {
		p, ok := place(in)
		return sdk.Matches(ok && inside(p))
	}), nil
}

func (m *Matcher) read(operator string, value json.RawMessage) (inside area, of []string, err error) {
	if operator != "geo/country" {
		return read(operator, value)
	}
	if m.world == nil {
		return nil, nil, sdk.ValueError("", errors.New("the matcher has no borders"))
	}
	return m.world.country(value)
}

// pair reads latitude and longitude from two properties.
type pair struct {
	inside area
	of     []string
}

// Reads names them.
func (p *pair) Reads() []string { return p.of }

// Match reports whether the values are a point inside.
func (p *pair) Match(in *sdk.Input) sdk.Verdict {
	at, ok := named(in.Value, p.of[0], p.of[1])
	return sdk.Matches(ok && p.inside(at))
}

// Close has nothing to release.
func (*Matcher) Close(context.Context) error { return nil }

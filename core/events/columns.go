package events

import (
	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
)

// Columns are the properties of an event that have columns; "" is an absent
// property.
type Columns struct {
	CurrentURL   string
	FlagKey      string
	FlagResponse string
}

// The longest texts in indexed columns, in bytes: an index entry of Postgres
// has at most 2,704 together with an event name and a distinct id.
const (
	flagKeyMax      = 800
	flagResponseMax = 200
)

// flagProperty is the property that names the flag of an event, "" for events
// that are not about a flag.
func flagProperty(event string) string {
	switch event {
	case "$feature_flag_called":
		return "$feature_flag"
	case "$feature_view", "$feature_interaction":
		return "feature_flag"
	}
	return ""
}

// responseProperty is the property with the answer of a flag.
const responseProperty = "$feature_flag_response"

// readColumns reads the columns from an event's properties; of several
// properties with one name it takes the last. Invalid JSON and values that are
// not objects have no properties.
func readColumns(p *fastjson.Parser, ev *sdk.Event) Columns {
	v, err := p.ParseBytes(ev.Properties)
	if err != nil || v.Type() != fastjson.TypeObject {
		return Columns{}
	}
	flag := flagProperty(ev.Name)
	var url, key, response *fastjson.Value
	v.GetObject().Visit(func(name []byte, v *fastjson.Value) {
		switch string(name) {
		case "$current_url":
			url = v
		case responseProperty:
			response = v
		case flag:
			key = v // without a flag property this is the property "", which is ignored below
		}
	})
	c := Columns{CurrentURL: text.Truncate(stringText(url), URLMax)}
	if flag != "" {
		c.FlagKey = text.Truncate(stringText(key), flagKeyMax)
		if response != nil && c.FlagKey != "" {
			c.FlagResponse = text.Truncate(scalarText(response), flagResponseMax)
		}
	}
	return c
}

// stringText is the value of a JSON string, "" for other types.
func stringText(v *fastjson.Value) string {
	if v == nil || v.Type() != fastjson.TypeString {
		return ""
	}
	return storable(string(v.GetStringBytes()))
}

// scalarText is the value of a JSON string, and the JSON of other types.
func scalarText(v *fastjson.Value) string {
	if v.Type() == fastjson.TypeString {
		return stringText(v)
	}
	return string(v.MarshalTo(nil))
}

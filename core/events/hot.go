package events

import (
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/sdk"
)

// hot is the part of an event's properties that has columns of its own; ""
// means that the event has no such property.
type hot struct {
	currentURL   string
	host         string
	pathname     string
	flagKey      string
	flagResponse string
}

// The longest texts in indexed columns, in bytes: an index entry of Postgres
// has at most 2,704 together with an event name and a distinct id.
const (
	flagKeyMax      = 800
	flagResponseMax = 200
)

// flagProperty is the property by which an event says which flag it is about;
// "" for events that are about none.
func flagProperty(event string) string {
	switch event {
	case "$feature_flag_called":
		return "$feature_flag"
	case "$feature_view", "$feature_interaction":
		return "feature_flag"
	}
	return ""
}

// responseProperty is the property with the answer a flag gave.
const responseProperty = "$feature_flag_response"

// readHot takes the columns out of an event's properties. What is no JSON
// object has none.
func readHot(p *fastjson.Parser, ev *sdk.Event) hot {
	v, err := p.ParseBytes(ev.Properties)
	if err != nil {
		return hot{}
	}
	h := hot{
		currentURL: cut(text(v.Get("$current_url")), URLMax),
		host:       text(v.Get("$host")),
		pathname:   text(v.Get("$pathname")),
	}
	if name := flagProperty(ev.Name); name != "" {
		h.flagKey = cut(text(v.Get(name)), flagKeyMax)
		if r := v.Get(responseProperty); r != nil && h.flagKey != "" {
			h.flagResponse = cut(scalar(r), flagResponseMax)
		}
	}
	return h
}

// text is the string v is, "" for everything else.
func text(v *fastjson.Value) string {
	if v == nil || v.Type() != fastjson.TypeString {
		return ""
	}
	return storable(string(v.GetStringBytes()))
}

// scalar is the text form of v.
func scalar(v *fastjson.Value) string {
	if v.Type() == fastjson.TypeString {
		return text(v)
	}
	return string(v.MarshalTo(nil))
}

// cut is the first n bytes of s, less a character that would be cut in two.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

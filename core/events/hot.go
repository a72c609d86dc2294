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

// readHot takes the columns out of an event's properties; of several with one
// name it takes the last. What is no JSON object has none.
func readHot(p *fastjson.Parser, ev *sdk.Event) hot {
	v, err := p.ParseBytes(ev.Properties)
	if err != nil || v.Type() != fastjson.TypeObject {
		return hot{}
	}
	flag := flagProperty(ev.Name)
	var url, host, pathname, key, response *fastjson.Value
	v.GetObject().Visit(func(name []byte, v *fastjson.Value) {
		switch string(name) {
		case "$current_url":
			url = v
		case "$host":
			host = v
		case "$pathname":
			pathname = v
		case responseProperty:
			response = v
		case flag:
			key = v // what is named "" is not looked at
		}
	})
	h := hot{currentURL: cut(text(url), URLMax), host: text(host), pathname: text(pathname)}
	if flag != "" {
		h.flagKey = cut(text(key), flagKeyMax)
		if response != nil && h.flagKey != "" {
			h.flagResponse = cut(scalar(response), flagResponseMax)
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

package ofrep

import (
	"strings"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/jsontext"
)

// kind is the type of the value of a flag, the same for every subject.
type kind string

// The kinds of values.
const (
	kindBoolean kind = "boolean"
	kindString  kind = "string"
	kindInteger kind = "integer"
	kindFloat   kind = "float"
	kindObject  kind = "object"
)

// payloadTrue is the name of the payload of a flag without variants.
const payloadTrue = "true"

// kindOf returns the type of the value of a flag, and whether the values are the
// payloads. They are if each value of the flag has a payload and all payloads
// have one type. Without variants only an object is the value: a flag that is on
// or off stays boolean when it gets a note as its payload.
func kindOf(f *filters.Filters) (k kind, payloads bool) {
	if len(f.Variants) == 0 {
		if payloadKind(f.Payloads[payloadTrue]) == kindObject {
			return kindObject, true
		}
		return kindBoolean, false
	}
	for i, v := range f.Variants {
		next := payloadKind(f.Payloads[v.Key])
		switch {
		case next == "":
			return kindString, false
		case i == 0 || next == k:
			k = next
		case isNumber(k) && isNumber(next):
			k = kindFloat
		default:
			return kindString, false
		}
	}
	return k, true
}

func isNumber(k kind) bool { return k == kindInteger || k == kindFloat }

// payloadKind returns the type of a payload, "" for one that is not JSON, null or
// an array.
func payloadKind(text string) kind {
	v, err := fastjson.Parse(text)
	if err != nil {
		return ""
	}
	switch v.Type() {
	case fastjson.TypeTrue, fastjson.TypeFalse:
		return kindBoolean
	case fastjson.TypeString:
		return kindString
	case fastjson.TypeObject:
		return kindObject
	case fastjson.TypeNumber:
		if strings.ContainsAny(text, ".eE") {
			return kindFloat
		}
		return kindInteger
	default:
		return ""
	}
}

// appendPayload appends a payload as a value of kind k. Of a float that is
// written as an integer it makes a float: providers look at the text.
func appendPayload(dst []byte, k kind, text string) []byte {
	text = strings.TrimSpace(text)
	dst = append(dst, text...)
	if k == kindFloat && payloadKind(text) == kindInteger {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendText appends a text as a JSON string.
func appendText(dst []byte, s string) []byte { return jsontext.AppendString(dst, s) }

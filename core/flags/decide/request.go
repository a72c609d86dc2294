package decide

import (
	"encoding/hex"
	"unicode/utf8"
	"unsafe"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web"
)

// maxIDChars is the number of characters of an identifier that are used.
const maxIDChars = 200

// decideRequest is the body of a decide request. Its fields refer to the parsed
// body. Of equal names the last one counts. The visit functions are allocated
// once: requests are pooled.
type decideRequest struct {
	distinctID string
	anonymous  string
	disabled   bool
	groups     *fastjson.Object
	person     *fastjson.Object
	properties *fastjson.Object // by group type
	keys       *fastjson.Value

	evaluation           *eval.Evaluation
	visit                func(name []byte, v *fastjson.Value)
	visitGroup           func(name []byte, v *fastjson.Value)
	visitGroupProperties func(name []byte, v *fastjson.Value)
}

func (r *decideRequest) reset() {
	*r = decideRequest{visit: r.visit, visitGroup: r.visitGroup, visitGroupProperties: r.visitGroupProperties}
}

func (r *decideRequest) field(name []byte, v *fastjson.Value) {
	switch string(name) {
	case "distinct_id":
		r.distinctID = identifierOf(v)
	case "$distinct_id":
		if r.distinctID == "" {
			r.distinctID = identifierOf(v)
		}
	case "$anon_distinct_id":
		r.anonymous = identifierOf(v)
	case "disable_flags":
		r.disabled = boolOf(v)
	case "groups", "$groups":
		r.groups = objectIn(v)
	case "person_properties":
		r.person = objectIn(v)
	case "group_properties":
		r.properties = objectIn(v)
	case "flag_keys_to_evaluate", "flag_keys":
		r.keys = nil
		if v.Type() == fastjson.TypeArray {
			r.keys = v
		}
	}
}

func objectIn(v *fastjson.Value) *fastjson.Object {
	if v.Type() != fastjson.TypeObject {
		return nil
	}
	return v.GetObject()
}

// identifierOf returns the text of an identifier: a string itself, null as
// nothing, any other value as JSON. It is truncated to maxIDChars.
func identifierOf(v *fastjson.Value) string {
	var s string
	switch v.Type() {
	case fastjson.TypeNull:
	case fastjson.TypeString:
		s = unsafeText(v.GetStringBytes())
	default:
		s = unsafeText(jsontext.AppendJSON(nil, v))
	}
	return truncateID(s)
}

func truncateID(s string) string {
	if len(s) <= maxIDChars {
		return s
	}
	n := 0
	for at := range s {
		if n == maxIDChars {
			return s[:at]
		}
		n++
	}
	return s
}

func boolOf(v *fastjson.Value) bool {
	switch v.Type() {
	case fastjson.TypeTrue:
		return true
	case fastjson.TypeString:
		return isTruthy(unsafeText(v.GetStringBytes()))
	case fastjson.TypeNumber:
		return v.GetFloat64() != 0
	default:
		return false
	}
}

// applyTo describes the request to an evaluation.
func (r *decideRequest) applyTo(e *eval.Evaluation) {
	r.evaluation = e
	e.SetAnonymousID(r.anonymous)
	if r.groups != nil {
		r.groups.Visit(r.visitGroup)
	}
	e.SetPersonProperties(r.person)
	if r.properties != nil {
		r.properties.Visit(r.visitGroupProperties)
	}
	if r.keys != nil {
		e.Select(keysIn(r.keys), false)
	}
	r.evaluation = nil
}

func keysIn(v *fastjson.Value) []string {
	list := v.GetArray()
	keys := make([]string, 0, len(list))
	for _, item := range list {
		keys = append(keys, unsafeText(item.GetStringBytes()))
	}
	return keys
}

func (r *decideRequest) group(name []byte, v *fastjson.Value) {
	switch v.Type() {
	case fastjson.TypeString:
		r.evaluation.SetGroup(unsafeText(name), unsafeText(v.GetStringBytes()))
	case fastjson.TypeNumber:
		r.evaluation.SetGroup(unsafeText(name), unsafeText(v.MarshalTo(nil)))
	default: // not a key
	}
}

func (r *decideRequest) groupProperties(name []byte, v *fastjson.Value) {
	r.evaluation.SetGroupProperties(unsafeText(name), objectIn(v))
}

// appendRequestID appends the id of the request as a UUID: the id itself if it
// is a UUID, with dashes if it has the digits of one, else a new one.
func appendRequestID(dst []byte, id string) []byte {
	var raw [16]byte
	switch {
	case len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-':
		return append(dst, id...)
	case len(id) == 32 && utf8.ValidString(id):
		if _, err := hex.Decode(raw[:], []byte(id)); err == nil {
			return appendUUID(dst, raw)
		}
	}
	raw = web.NewRequestID()
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return appendUUID(dst, raw)
}

func appendUUID(dst []byte, raw [16]byte) []byte {
	for i, b := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		const digits = "0123456789abcdef"
		dst = append(dst, digits[b>>4], digits[b&15])
	}
	return dst
}

// unsafeText returns b as a string without a copy. b must not change while the
// string is in use.
func unsafeText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

package flags

import (
	"encoding/hex"
	"math/rand/v2"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/match"
)

// longestID is how many characters of an identifier count.
const longestID = 200

// asked is the body of a decide request. What it holds points into the parsed
// body. Of equal names the last one counts.
type asked struct {
	distinctID string
	anonymous  string
	disabled   bool
	groups     *fastjson.Object
	person     *fastjson.Object
	properties *fastjson.Object // by group type
	keys       *fastjson.Value

	run                  *run
	visit                func(name []byte, v *fastjson.Value)
	visitGroup           func(name []byte, v *fastjson.Value)
	visitGroupProperties func(name []byte, v *fastjson.Value)
}

func (a *asked) reset() {
	*a = asked{visit: a.visit, visitGroup: a.visitGroup, visitGroupProperties: a.visitGroupProperties}
}

func (a *asked) field(name []byte, v *fastjson.Value) {
	switch string(name) {
	case "distinct_id":
		a.distinctID = identifierOf(v)
	case "$distinct_id":
		if a.distinctID == "" {
			a.distinctID = identifierOf(v)
		}
	case "$anon_distinct_id":
		a.anonymous = identifierOf(v)
	case "disable_flags":
		a.disabled = truthOf(v)
	case "groups", "$groups":
		a.groups = objectIn(v)
	case "person_properties":
		a.person = objectIn(v)
	case "group_properties":
		a.properties = objectIn(v)
	case "flag_keys_to_evaluate", "flag_keys":
		a.keys = nil
		if v.Type() == fastjson.TypeArray {
			a.keys = v
		}
	}
}

func objectIn(v *fastjson.Value) *fastjson.Object {
	if v.Type() != fastjson.TypeObject {
		return nil
	}
	return v.GetObject()
}

// identifierOf is the text of an identifier: a string as it is, anything else
// as JSON, null not at all. It is cut to its first two hundred characters.
func identifierOf(v *fastjson.Value) string {
	var s string
	switch v.Type() {
	case fastjson.TypeNull:
	case fastjson.TypeString:
		s = textView(v.GetStringBytes())
	default:
		s = textView(match.AppendJSON(nil, v))
	}
	return shortened(s)
}

func shortened(s string) string {
	if len(s) <= longestID {
		return s
	}
	n := 0
	for at := range s {
		if n == longestID {
			return s[:at]
		}
		n++
	}
	return s
}

func truthOf(v *fastjson.Value) bool {
	switch v.Type() {
	case fastjson.TypeTrue:
		return true
	case fastjson.TypeString:
		return truth(textView(v.GetStringBytes()))
	case fastjson.TypeNumber:
		return v.GetFloat64() != 0
	default:
		return false
	}
}

// into lays the request into a run.
func (a *asked) into(r *run) {
	a.run, r.anonymous = r, a.anonymous
	if a.groups != nil {
		a.groups.Visit(a.visitGroup)
	}
	r.fill(&r.person, &r.set.people, fromRequest, a.person)
	if a.properties != nil {
		a.properties.Visit(a.visitGroupProperties)
	}
	if a.keys != nil {
		r.choose(keysIn(a.keys), false)
	}
	a.run = nil
}

func keysIn(v *fastjson.Value) []string {
	list := v.GetArray()
	keys := make([]string, 0, len(list))
	for _, item := range list {
		keys = append(keys, textView(item.GetStringBytes()))
	}
	return keys
}

func (a *asked) group(name []byte, v *fastjson.Value) {
	switch v.Type() {
	case fastjson.TypeString:
		a.run.group(textView(name), textView(v.GetStringBytes()))
	case fastjson.TypeNumber:
		a.run.group(textView(name), textView(v.MarshalTo(nil)))
	default: // no key at all
	}
}

func (a *asked) groupProperties(name []byte, v *fastjson.Value) {
	r := a.run
	if at, ok := r.set.groupTypes[string(name)]; ok {
		r.fill(&r.groups[at], &r.set.groups[at].schema, fromRequest, objectIn(v))
	}
}

// appendRequestID appends the id of the request as a UUID: the caller's own
// when it is one, the one in our log when it has the digits of one, else a new
// one.
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
	hi, lo := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		raw[i], raw[8+i] = byte(hi>>(8*i)), byte(lo>>(8*i))
	}
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

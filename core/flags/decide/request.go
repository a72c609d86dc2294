package decide

import (
	"encoding/hex"
	"unicode/utf8"
	"unsafe"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
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
	distinctID  string
	anonymous   string
	deviceID    string
	runtime     string
	disabled    bool
	surveysOnly bool
	noLocation  bool
	zone, extra string // of a visitor without cookies
	groups      *fastjson.Object
	person      *fastjson.Object
	properties  *fastjson.Object // by group type
	keys        *fastjson.Value
	contextList *fastjson.Value
	wrongField  string // the first field whose type is wrong

	evaluation           *eval.Evaluation
	visit                func(name []byte, v *fastjson.Value)
	visitGroup           func(name []byte, v *fastjson.Value)
	visitGroupProperties func(name []byte, v *fastjson.Value)
	visitGroupTypes      func(name []byte, v *fastjson.Value)
}

func (r *decideRequest) reset() {
	*r = decideRequest{visit: r.visit, visitGroup: r.visitGroup, visitGroupProperties: r.visitGroupProperties, visitGroupTypes: r.visitGroupTypes}
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
		r.groups = r.object(name, v)
	case "person_properties", "$properties":
		r.person = r.object(name, v)
	case "group_properties", "$group_properties":
		r.properties = r.object(name, v)
	case "$device_id":
		r.deviceID = identifierOf(v)
	case "device_id":
		if r.deviceID == "" {
			r.deviceID = identifierOf(v)
		}
	case "evaluation_runtime":
		r.runtime = unsafeText(v.GetStringBytes())
	case "evaluation_contexts", "evaluation_environments", "evaluation_tags":
		r.contextList = v
	case "only_evaluate_survey_feature_flags":
		r.surveysOnly = boolOf(v)
	case "timezone":
		r.zone = unsafeText(v.GetStringBytes())
	case "cookieless_hash_extra":
		r.extra = unsafeText(v.GetStringBytes())
	case "geoip_disable":
		r.noLocation = boolOf(v)
	case "flag_keys_to_evaluate", "flag_keys":
		r.keys = nil
		if v.Type() == fastjson.TypeArray {
			r.keys = v
		}
	}
}

// object returns the object of a field. Null and an empty list are no object: PHP
// encodes an empty array as a list. Other types are an error, see check.
func (r *decideRequest) object(name []byte, v *fastjson.Value) *fastjson.Object {
	switch v.Type() {
	case fastjson.TypeObject:
		return v.GetObject()
	case fastjson.TypeNull:
	default:
		if v.Type() == fastjson.TypeArray && len(v.GetArray()) == 0 {
			break
		}
		if r.wrongField == "" {
			r.wrongField = string(name)
		}
	}
	return nil
}

// check fails with an Invalid fault if a field has a wrong type: the flags would be
// decided without what the client sent.
func (r *decideRequest) check() error {
	if r.wrongField == "" && r.properties != nil {
		r.properties.Visit(r.visitGroupTypes)
	}
	if r.wrongField == "" {
		return nil
	}
	return fault.Fieldf(r.wrongField, "invalid_input", "%s must be an object.", r.wrongField)
}

func (r *decideRequest) checkGroupType(_ []byte, v *fastjson.Value) {
	_ = r.object(groupPropertiesField, v)
}

var groupPropertiesField = []byte("group_properties")

// contexts returns the evaluation contexts that the request names.
func (r *decideRequest) contexts() []string {
	if r.contextList == nil {
		return nil
	}
	return keysIn(r.contextList)
}

// device returns the id of the person's device: a field of the request, else the
// property of the person that the request gives.
func (r *decideRequest) device() string {
	if r.deviceID == "" && r.person != nil {
		if v := r.person.Get("$device_id"); v != nil {
			return identifierOf(v)
		}
	}
	return r.deviceID
}

// identifierOf returns identifierText truncated to maxIDChars.
func identifierOf(v *fastjson.Value) string { return truncateID(identifierText(v)) }

// identifierText returns the text of an identifier: a string itself, null as
// nothing, any other value as JSON with sorted names, as capture stores it.
func identifierText(v *fastjson.Value) string {
	switch v.Type() {
	case fastjson.TypeNull:
		return ""
	case fastjson.TypeString:
		return unsafeText(v.GetStringBytes())
	case fastjson.TypeObject, fastjson.TypeArray:
		return jsontext.Sorted(jsontext.AppendJSON(nil, v))
	default:
		return unsafeText(jsontext.AppendJSON(nil, v))
	}
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
	if e.BucketsByDevice() {
		e.SetDeviceID(r.device())
	}
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

// group sets a group of the request, whose key is read as capture reads it. Null is
// no group.
func (r *decideRequest) group(name []byte, v *fastjson.Value) {
	if v.Type() != fastjson.TypeNull {
		r.evaluation.SetGroup(unsafeText(name), identifierText(v))
	}
}

func (r *decideRequest) groupProperties(name []byte, v *fastjson.Value) {
	if v.Type() == fastjson.TypeObject {
		r.evaluation.SetGroupProperties(unsafeText(name), v.GetObject())
	}
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
	return appendUUID(dst, web.NewRequestID())
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

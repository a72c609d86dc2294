package ofrep

import (
	"unicode/utf8"
	"unsafe"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/eval"
)

// maxIDChars is the number of characters of a targeting key that are used, as
// many as of a distinct id.
const maxIDChars = 200

// Attributes of a context that are not person properties.
const (
	attrTargetingKey    = "targetingKey"
	attrGroups          = "groups"
	attrGroupProperties = "groupProperties"
	attrGroupSnake      = "group_properties"
	attrAnonymous       = "$anon_distinct_id"
	attrRuntime         = "evaluation_runtime"
	attrContexts        = "evaluation_contexts"
	attrDevice          = "$device_id" // stays a property, as in a request to /decide
	attrDeviceID        = "device_id"
	attrNoLocation      = "geoip_disable"
)

// evaluationContext is the context of a request. Its fields refer to the parsed
// body, which it changes.
type evaluationContext struct {
	parser          fastjson.Parser
	size            int
	targetingKey    string
	anonymous       string
	device          string
	runtime         string
	contexts        []string
	noLocation      bool
	person          *fastjson.Object
	groups          *fastjson.Object
	groupProperties *fastjson.Object
}

var (
	errBody      = fault.New(fault.Malformed, codeParse, "The body is not a JSON object.")
	errContext   = fault.New(fault.Invalid, codeContext, "The body has no object named context.")
	errNoTarget  = fault.New(fault.Invalid, codeNoTarget, "The context has no targetingKey: give the distinct id of the person.")
	errTarget    = fault.New(fault.Invalid, codeContext, "The targetingKey of the context is not a string.")
	errGroupKeys = fault.New(fault.Invalid, codeContext, "The groups of the context are not an object of strings or numbers.")
)

// parse reads the body of a request. The codes of its errors are those of the
// protocol.
func (x *evaluationContext) parse(body []byte) error {
	*x = evaluationContext{parser: x.parser, size: len(body), contexts: x.contexts[:0]}
	v, err := x.parser.ParseBytes(body)
	if err != nil || v.Type() != fastjson.TypeObject {
		return errBody.Because(err)
	}
	given := v.Get("context")
	if given == nil || given.Type() != fastjson.TypeObject {
		return errContext
	}
	return x.read(given.GetObject())
}

// read takes the attributes of the context that are not person properties.
func (x *evaluationContext) read(o *fastjson.Object) error {
	key := o.Get(attrTargetingKey)
	switch {
	case key == nil || key.Type() == fastjson.TypeNull:
		return errNoTarget
	case key.Type() != fastjson.TypeString:
		return errTarget
	}
	if x.targetingKey = truncateID(textView(key.GetStringBytes())); x.targetingKey == "" {
		return errNoTarget
	}
	o.Del(attrTargetingKey)
	x.groups = takeObject(o, attrGroups)
	if !areKeys(x.groups) {
		return errGroupKeys
	}
	x.groupProperties = takeObject(o, attrGroupProperties)
	if more := takeObject(o, attrGroupSnake); more != nil {
		x.groupProperties = more
	}
	if id := o.Get(attrAnonymous); id != nil && id.Type() == fastjson.TypeString {
		x.anonymous = truncateID(textView(id.GetStringBytes()))
		o.Del(attrAnonymous)
	}
	x.readScope(o)
	x.person = o
	return nil
}

// readScope takes the attributes that select flags and turn the location off.
func (x *evaluationContext) readScope(o *fastjson.Object) {
	if v := o.Get(attrNoLocation); v != nil && (v.Type() == fastjson.TypeTrue || v.Type() == fastjson.TypeFalse) {
		x.noLocation = v.Type() == fastjson.TypeTrue
		o.Del(attrNoLocation)
	}
	if v := o.Get(attrRuntime); v != nil && v.Type() == fastjson.TypeString {
		x.runtime = textView(v.GetStringBytes())
		o.Del(attrRuntime)
	}
	if v := o.Get(attrContexts); v != nil && v.Type() == fastjson.TypeArray {
		for _, item := range v.GetArray() {
			if item.Type() == fastjson.TypeString {
				x.contexts = append(x.contexts, textView(item.GetStringBytes()))
			}
		}
		o.Del(attrContexts)
	}
	for _, name := range [...]string{attrDeviceID, attrDevice} {
		if v := o.Get(name); v != nil && v.Type() == fastjson.TypeString {
			x.device = truncateID(textView(v.GetStringBytes()))
		}
	}
}

// takeObject removes an attribute that is an object. Any other attribute of the
// name stays as a property of the person.
func takeObject(o *fastjson.Object, name string) *fastjson.Object {
	v := o.Get(name)
	if v == nil || v.Type() != fastjson.TypeObject {
		return nil
	}
	o.Del(name)
	return v.GetObject()
}

// areKeys reports whether all values of o can be keys of groups.
func areKeys(o *fastjson.Object) bool {
	if o == nil {
		return true
	}
	ok := true
	o.Visit(func(_ []byte, v *fastjson.Value) {
		switch v.Type() {
		case fastjson.TypeString, fastjson.TypeNumber, fastjson.TypeNull:
		default:
			ok = false
		}
	})
	return ok
}

// applyTo describes the context to an evaluation, which refers to it until its
// Release.
func (x *evaluationContext) applyTo(e *eval.Evaluation) {
	e.SetAnonymousID(x.anonymous)
	e.SetDeviceID(x.device)
	if x.groups != nil {
		x.groups.Visit(func(name []byte, v *fastjson.Value) {
			switch v.Type() {
			case fastjson.TypeString:
				e.SetGroup(textView(name), textView(v.GetStringBytes()))
			case fastjson.TypeNumber:
				e.SetGroup(textView(name), textView(v.MarshalTo(nil)))
			default: // null: no group
			}
		})
	}
	e.SetPersonProperties(x.person)
	if x.groupProperties == nil {
		return
	}
	x.groupProperties.Visit(func(name []byte, v *fastjson.Value) {
		if v.Type() == fastjson.TypeObject {
			e.SetGroupProperties(textView(name), v.GetObject())
		}
	})
}

// truncateID returns the characters of an identifier that are used.
func truncateID(s string) string {
	if len(s) <= maxIDChars || utf8.RuneCountInString(s) <= maxIDChars {
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

// textView returns b as a string without a copy. b must not change while the
// string is in use.
func textView(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

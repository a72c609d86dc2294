package eval

import (
	"github.com/valyala/fastjson"
)

// value returns the value of an outcome for clients: true, false or a variant key.
func (f *flag) value(o *outcome) any {
	if name := f.variantKey(o); name != "" {
		return name
	}
	return o.on
}

// quotedVariant returns the variant of an outcome as JSON, or "".
func (f *flag) quotedVariant(o *outcome) string {
	switch {
	case o.heldOut:
		return f.holdout.result.quoted
	case o.on && o.variant != noVariant:
		return f.variants[o.variant].quoted
	}
	return ""
}

// quotedPayload returns the payload of an outcome as a JSON string, or "".
func (f *flag) quotedPayload(o *outcome) string {
	switch {
	case !o.on:
		return ""
	case o.heldOut:
		return f.holdout.result.payload
	case o.variant != noVariant:
		return f.variants[o.variant].payload
	}
	return f.onPayload
}

// payload returns the payload of an outcome, or nil.
func (f *flag) payload(o *outcome) *string {
	quoted := f.quotedPayload(o)
	if quoted == "" {
		return nil
	}
	v, err := fastjson.Parse(quoted)
	if err != nil {
		return nil
	}
	text := string(v.GetStringBytes())
	return &text
}

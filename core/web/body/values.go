package body

import (
	"bytes"
	"math"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
)

// valueBytes is about the memory of a parsed JSON value.
const valueBytes = 128

var errTooManyValues = fault.New(fault.TooLarge, "request_too_large", "Request too large: the JSON has too many values.")

// CheckValues must pass before valid JSON is parsed into values. It takes their
// memory from l.Memory; it fails with TooLarge above l.Values, and with
// Unavailable when the memory is used up.
func (l Limits) CheckValues(text []byte) error {
	limit := l.Values
	if limit <= 0 {
		limit = math.MaxInt
	}
	n := jsontext.CountValues(text, limit)
	if n > limit {
		return errTooManyValues
	}
	return l.Memory.Take(n * valueBytes)
}

// MaxSearchBytes is the size of the largest body that FindField searches.
const MaxSearchBytes = 256 << 10

// FindField returns a text field of a form or a JSON object, without white space
// around it; "" without one. It searches small bodies without an encoding only,
// and builds nothing: it is for requests of unknown senders.
func FindField(req *fasthttp.Request, name string) (value string) {
	raw := req.Body()
	if len(raw) > MaxSearchBytes || contentEncoding(req) != "" || !bytes.Contains(raw, unsafeBytes(name)) {
		return ""
	}
	kind := req.Header.ContentType()
	switch boundary := req.Header.MultipartFormBoundary(); {
	case len(boundary) > 0:
		value = findPart(raw, boundary, name)
	case IsFormType(kind) && !StartsJSON(raw):
		value = findInForm(raw, name)
	case StartsJSON(raw) && jsontext.Problem(raw, MaxDepth) == "":
		value = findMember(bytes.TrimSpace(raw), name)
	}
	return strings.TrimSpace(value)
}

func findPart(raw, boundary []byte, name string) (value string) {
	_ = EachPart(raw, boundary, func(p Part) error {
		if string(p.Name) == name && p.FileName == "" {
			value = string(p.Value)
		}
		return nil
	})
	return value
}

func findInForm(raw []byte, name string) (value string) {
	_ = EachField(raw, MaxFields, func(n, v []byte) error {
		if string(n) == name && value == "" {
			value = string(AppendUnescaped(nil, v))
		}
		return nil
	})
	return value
}

// findMember returns a member of a valid JSON text that is an object. Of equal
// names the last one counts.
func findMember(raw []byte, name string) (value string) {
	if raw = bytes.TrimPrefix(raw, byteOrderMark); raw[0] != '{' {
		return ""
	}
	jsontext.Members(raw, func(quoted, v []byte) {
		if n, _ := jsontext.Unquote(string(quoted)); n == name {
			value, _ = jsontext.Unquote(string(v))
		}
	})
	return value
}

package envelope

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
)

var (
	errNotString   = fault.New(fault.Unauthenticated, "invalid_api_key", "Provided API key is not valid: not_string")
	errMixedTokens = fault.New(fault.Unauthenticated, "invalid_api_key", "Project API key invalid. All events of a request must carry the same key.")
)

// tokens holds the values of the fields in which clients send the key.
type tokens struct {
	dollar, token, apiKey []byte
}

func (t *tokens) set(name, value []byte) {
	switch string(name) {
	case "$token":
		t.dollar = value
	case "token":
		t.token = value
	case "api_key":
		t.apiKey = value
	}
}

// first returns the value that takes precedence, or nil.
func (t *tokens) first() []byte {
	for _, v := range [...][]byte{t.dollar, t.token, t.apiKey} {
		if !isNull(v) && string(v) != `""` {
			return v
		}
	}
	return nil
}

// readProperties reads the token of the properties object at the cursor.
func readProperties(s *jsontext.Scanner, t *tokens) {
	var buf [16]byte
	s.Open()
	name, ok := s.Member(true)
	for ; ok; name, ok = s.Member(false) {
		v := s.Value()
		if string(name.Resolve(buf[:])) == "token" {
			t.token = v
		}
	}
}

// readItem reads the key of the event at the cursor. It fails if an earlier event
// carries another key.
func (r *envelopeReader) readItem(s *jsontext.Scanner, first bool) error {
	var own, inner tokens
	var buf [16]byte
	s.Open()
	name, ok := s.Member(true)
	for ; ok; name, ok = s.Member(false) {
		field := name.Resolve(buf[:])
		if string(field) == "properties" && s.Peek() == '{' {
			inner = tokens{}
			readProperties(s, &inner)
			continue
		}
		v := s.Value()
		if first && string(field) == "project_id" && r.project == nil {
			r.project = v
		}
		own.set(field, v)
	}
	found := own.first()
	if found == nil {
		found = inner.first()
	}
	switch {
	case found == nil:
	case r.itemToken == nil:
		r.itemToken = found
	case string(found) != string(r.itemToken) && trimmedText(found) != trimmedText(r.itemToken):
		return errMixedTokens
	}
	return nil
}

// findToken returns the key of the request: that of the envelope, else that of the
// events.
func (r *envelopeReader) findToken() (string, error) {
	v := r.top.first()
	if v == nil {
		v = r.itemToken
	}
	switch {
	case v == nil:
		return "", nil
	case v[0] != '"':
		return "", errNotString
	}
	return trimmedText(v), nil
}

func trimmedText(raw []byte) string { return strings.TrimSpace(shortText(raw)) }

// shortText returns a JSON value as text: an unescaped string, the text of any
// other value, and "" for null. It is for values that are short if they are
// valid; it shortens longer ones, which are rejected later. A text without escapes
// shares the memory of the body.
func shortText(raw []byte) string {
	switch {
	case isNull(raw):
		return ""
	case raw[0] != '"':
		return string(raw[:min(len(raw), maxText)])
	case len(raw) > maxText:
		return strings.ToValidUTF8(string(raw[1:maxText]), "")
	}
	t := jsontext.String{Raw: raw[1 : len(raw)-1]}
	if bytes.IndexByte(t.Raw, '\\') < 0 && bytes.IndexByte(t.Raw, 0) < 0 && utf8.Valid(t.Raw) {
		return jsontext.View(t.Raw)
	}
	return string(t.Append(make([]byte, 0, len(t.Raw))))
}

// maxText is the number of bytes of a value that are used.
const maxText = 255

func isNull(raw []byte) bool { return raw == nil || raw[0] == 'n' || raw[0] == 'N' }

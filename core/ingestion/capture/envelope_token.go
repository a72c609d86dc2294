package capture

import (
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/jsontext"
)

var (
	errNotString   = fault.New(fault.Unauthenticated, "invalid_api_key", "Provided API key is not valid: not_string")
	errMixedTokens = fault.New(fault.Unauthenticated, "invalid_api_key", "Project API key invalid. All events of a request must carry the same key.")
)

// tokens holds the values of the names under which clients send the key.
type tokens struct {
	dollar, token, apiKey []byte
}

func (t *tokens) note(name, value []byte) {
	switch string(name) {
	case "$token":
		t.dollar = value
	case "token":
		t.token = value
	case "api_key":
		t.apiKey = value
	}
}

// value returns the one that counts, or nil.
func (t *tokens) value() []byte {
	for _, v := range [...][]byte{t.dollar, t.token, t.apiKey} {
		if !event.IsNull(v) && string(v) != `""` {
			return v
		}
	}
	return nil
}

// readProperties reads the object at the cursor; of all its members only the
// token counts.
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

// readItem reads the key of the event at the cursor. It fails when the events
// before it carried another one.
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
		own.note(field, v)
	}
	found := own.value()
	if found == nil {
		found = inner.value()
	}
	switch {
	case found == nil:
	case r.found == nil:
		r.found = found
	case string(found) != string(r.found) && trimmedText(found) != trimmedText(r.found):
		return errMixedTokens
	}
	return nil
}

// token returns the key of the whole request: the envelope's, else the events'.
func (r *envelopeReader) token() (string, error) {
	v := r.top.value()
	if v == nil {
		v = r.found
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

// shortText is plainText for values that are short when they are right; of
// others enough is kept to show and to refuse.
func shortText(raw []byte) string {
	switch {
	case event.IsNull(raw):
		return ""
	case len(raw) > 255 && raw[0] == '"':
		return event.FirstChars(event.PlainText(raw), 100)
	case len(raw) > 255:
		return string(raw[:100])
	}
	return event.PlainText(raw)
}

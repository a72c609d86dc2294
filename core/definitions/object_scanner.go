package definitions

import (
	"bytes"
	"encoding/json"
)

// objectScanner iterates over the members of a JSON object without building
// values. It expects valid JSON, as ingestion guarantees. On invalid text it
// stops and never reads past the end.
type objectScanner struct {
	s []byte
	i int
}

// scanObject returns a scanner before the first member of the object in s;
// other values have no members.
func scanObject(s []byte) objectScanner {
	m := objectScanner{s: s}
	if m.peek() != '{' {
		m.i = len(s)
		return m
	}
	m.i++
	return m
}

// next returns the next name and the text of its value; false at the end. Both
// share the memory of the text, except names with escapes.
func (m *objectScanner) next() (name, value []byte, ok bool) {
	if m.peek() == ',' {
		m.i++
	}
	if m.peek() != '"' {
		return nil, nil, false
	}
	start := m.i
	escaped := m.skipString()
	if m.i-start < 2 || m.peek() != ':' {
		return nil, nil, false
	}
	end := bytes.LastIndexByte(m.s[start:m.i], '"') + start
	name = m.s[start+1 : end]
	if escaped {
		var s string
		if json.Unmarshal(m.s[start:end+1], &s) != nil {
			return nil, nil, false
		}
		name = []byte(s)
	}
	m.i++
	m.peek()
	start = m.i
	m.skipValue()
	return name, m.s[start:m.i], m.i > start
}

// peek skips white space and returns the next byte, 0 at the end.
func (m *objectScanner) peek() byte {
	for m.i < len(m.s) {
		if c := m.s[m.i]; c > ' ' {
			return c
		}
		m.i++
	}
	return 0
}

// skipString moves past the string at the cursor.
func (m *objectScanner) skipString() (escaped bool) {
	m.i++
	for {
		n := bytes.IndexByte(m.s[m.i:], '"')
		if n < 0 {
			m.i = len(m.s)
			return escaped
		}
		slash := bytes.IndexByte(m.s[m.i:m.i+n], '\\')
		if slash < 0 {
			m.i += n + 1
			return escaped
		}
		escaped = true
		m.i = min(m.i+slash+2, len(m.s))
	}
}

// skipValue moves past the value at the cursor.
func (m *objectScanner) skipValue() {
	depth := 0
	for m.i < len(m.s) {
		switch m.s[m.i] {
		case '"':
			m.skipString()
			if depth == 0 {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return
			}
			if depth == 0 {
				m.i++
				return
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return
			}
		}
		m.i++
	}
}

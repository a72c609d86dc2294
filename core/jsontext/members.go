package jsontext

import "encoding/json"

// Problem returns what makes text invalid JSON and where, "" if it is one valid
// value of at most maxDepth levels.
func Problem(text []byte, maxDepth int) string {
	s := Scanner{Strict: true, KeepLines: true, MaxDepth: maxDepth}
	s.Reset(text)
	s.Check()
	return s.Problem()
}

// Members calls fn for each member of a valid JSON object, in order. name is the
// JSON string with its quotes.
func Members(object []byte, fn func(name, value []byte)) {
	s := Scanner{}
	s.Reset(object)
	s.Peek()
	s.Open()
	for name, ok := s.Member(true); ok; name, ok = s.Member(false) {
		end := s.Pos - 1 // the colon
		for object[end-1] != '"' {
			end--
		}
		start := end - len(name.Raw) - 2
		value := s.Value()
		if s.Bad {
			return
		}
		fn(object[start:end], value[:len(value):len(value)])
	}
}

// Elements returns the elements of a valid JSON array.
func Elements(list []byte) []json.RawMessage {
	out := []json.RawMessage{}
	s := Scanner{}
	s.Reset(list)
	s.Peek()
	s.Open()
	for first := true; s.Element(first); first = false {
		value := s.Value()
		if s.Bad {
			break
		}
		out = append(out, value[:len(value):len(value)])
	}
	return out
}

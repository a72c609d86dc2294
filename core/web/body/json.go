package body

import "encoding/json"

// MaxDepth bounds the nesting of JSON that was checked before: what a reader
// of any accepted body may meet.
const MaxDepth = 300

// CheckJSON returns what makes b invalid JSON and where, "" if b is one valid
// JSON value nested at most depth levels.
func CheckJSON(b []byte, depth int) (problem string) {
	r := scanner{b: b, depth: depth}
	if r.check() {
		return ""
	}
	return r.problem()
}

// Members calls fn for each member of a valid JSON object, in order. name is
// the JSON string with its quotes.
func Members(object []byte, fn func(name, value []byte)) {
	r := scanner{b: object, depth: MaxDepth, repair: true, i: 1}
	for r.space(); !r.is('}'); r.space() {
		from := r.i
		r.str()
		name := object[from:r.i]
		r.space()
		r.is(':')
		r.space()
		from = r.i
		r.value()
		fn(name, object[from:r.i:r.i])
		r.space()
		r.is(',')
	}
}

// Elements returns the elements of a valid JSON array.
func Elements(list []byte) []json.RawMessage {
	out := []json.RawMessage{}
	r := scanner{b: list, depth: MaxDepth, repair: true, i: 1}
	for r.space(); !r.is(']'); r.space() {
		from := r.i
		r.value()
		out = append(out, list[from:r.i:r.i])
		r.space()
		r.is(',')
	}
	return out
}

// HasLoneSurrogate reports whether a JSON string holds an escape that is half
// of a surrogate pair.
func HasLoneSurrogate(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] != 'u' {
			continue
		}
		switch u := hex4(text[i+1:]); {
		case isHigh(u) && isLow(escapedUnit(text[i+5:])):
			i += 6
		case isHigh(u) || isLow(u):
			return true
		}
	}
	return false
}

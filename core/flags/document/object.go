package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// Object is a JSON object that keeps the order of its names and the exact text of
// its values, so that callers get back unknown names and all digits as sent. A
// duplicate name keeps its first place and its last value.
type Object struct {
	Names  []string
	values map[string]json.RawMessage
}

// NewObject returns an empty object.
func NewObject() *Object { return &Object{values: map[string]json.RawMessage{}} }

var errNotObject = errors.New("not a JSON object")

// Parse reads raw, which must be one JSON object and nothing else.
func Parse(raw []byte) (*Object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') {
		return nil, errNotObject
	}
	d := NewObject()
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		d.Set(name.(string), value)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errNotObject
	}
	return d, nil
}

// Get returns the text of the value of name, and whether the name exists.
func (d *Object) Get(name string) (json.RawMessage, bool) {
	v, ok := d.values[name]
	return v, ok
}

// Given returns the value of name unless it is absent or null.
func (d *Object) Given(name string) (json.RawMessage, bool) {
	v, ok := d.values[name]
	return v, ok && !IsNull(v)
}

// Set sets the text of the value of name. A new name is the last one.
func (d *Object) Set(name string, value json.RawMessage) {
	if _, ok := d.values[name]; !ok {
		d.Names = append(d.Names, name)
	}
	d.values[name] = value
}

// Remove removes name, if it exists.
func (d *Object) Remove(name string) {
	if _, ok := d.values[name]; !ok {
		return
	}
	delete(d.values, name)
	for i, n := range d.Names {
		if n == name {
			d.Names = append(d.Names[:i], d.Names[i+1:]...)
			return
		}
	}
}

// Raw returns the JSON text of the object.
func (d *Object) Raw() json.RawMessage {
	out := []byte{'{'}
	for i, name := range d.Names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, Quote(name)...)
		out = append(out, ':')
		out = append(out, d.values[name]...)
	}
	return append(out, '}')
}

// ParseList reads a JSON array into the texts of its elements.
func ParseList(raw []byte) ([]json.RawMessage, error) {
	if !StartsWith(raw, '[') {
		return nil, errors.New("not a JSON array")
	}
	var list []json.RawMessage
	err := json.Unmarshal(raw, &list)
	return list, err
}

// JoinList returns the JSON array of the given texts.
func JoinList(list []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// Quote returns the JSON text of s without HTML escapes.
func Quote(s string) json.RawMessage { return Encode(s) }

// Encode returns the compact JSON text of strings, numbers, booleans and structs of
// them, and null for a value that JSON cannot encode.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// IsNull reports whether raw is the JSON null.
func IsNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }

// StartsWith reports whether the first character of raw, after white space, is c.
func StartsWith(raw []byte, c byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == c
}

// Text returns the string a JSON text holds, and whether it holds one.
func Text(raw []byte) (string, bool) {
	if !StartsWith(raw, '"') {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// Integer reads a whole number, or a text of one.
func Integer(raw json.RawMessage) (int64, bool) {
	if s, ok := Text(raw); ok {
		n, err := strconv.ParseInt(s, 10, 64)
		return n, err == nil
	}
	var n int64
	return n, len(raw) > 0 && !IsNull(raw) && json.Unmarshal(raw, &n) == nil
}

// KindOf returns the JSON kind of a text for error messages.
func KindOf(raw []byte) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '[':
		return "list"
	case raw[0] == '"':
		return "string"
	case raw[0] == 't' || raw[0] == 'f':
		return "boolean"
	case raw[0] == 'n':
		return "null"
	case raw[0] == '{':
		return "object"
	}
	return "number"
}

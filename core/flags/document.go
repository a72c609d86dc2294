package flags

import (
	"bytes"
	"encoding/json"
	"errors"
)

// document is a JSON object that remembers the order of its names and the
// exact text of its values. Filters go through it, so that names we do not
// know and digits we would print otherwise come back to the caller as sent.
// A name that stands twice keeps its first place and its last value.
type document struct {
	names  []string
	values map[string]json.RawMessage
}

var errNotObject = errors.New("not a JSON object")

// parseDocument reads raw, which must be one JSON object and nothing else.
func parseDocument(raw []byte) (*document, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') {
		return nil, errNotObject
	}
	d := &document{values: map[string]json.RawMessage{}}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		d.set(name.(string), value)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errNotObject
	}
	return d, nil
}

func (d *document) get(name string) (json.RawMessage, bool) {
	v, ok := d.values[name]
	return v, ok
}

// given returns the value of name unless it is absent or null.
func (d *document) given(name string) (json.RawMessage, bool) {
	v, ok := d.values[name]
	return v, ok && !isNull(v)
}

func (d *document) set(name string, value json.RawMessage) {
	if _, ok := d.values[name]; !ok {
		d.names = append(d.names, name)
	}
	d.values[name] = value
}

func (d *document) remove(name string) {
	if _, ok := d.values[name]; !ok {
		return
	}
	delete(d.values, name)
	for i, n := range d.names {
		if n == name {
			d.names = append(d.names[:i], d.names[i+1:]...)
			return
		}
	}
}

// raw is the text of the document.
func (d *document) raw() json.RawMessage {
	out := []byte{'{'}
	for i, name := range d.names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, quote(name)...)
		out = append(out, ':')
		out = append(out, d.values[name]...)
	}
	return append(out, '}')
}

// parseList reads a JSON array into the texts of its elements.
func parseList(raw []byte) ([]json.RawMessage, error) {
	if !startsWith(raw, '[') {
		return nil, errors.New("not a JSON array")
	}
	var list []json.RawMessage
	err := json.Unmarshal(raw, &list)
	return list, err
}

// joinList is the JSON array of the given texts.
func joinList(list []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// quote is the JSON text of s, readable: no HTML escapes.
func quote(s string) json.RawMessage { return encode(s) }

// encode is the compact JSON text of a value that cannot fail to encode:
// strings, numbers, booleans and structs of them.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

func isNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }

func startsWith(raw []byte, c byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == c
}

// text returns the string a JSON text holds, and whether it holds one.
func text(raw []byte) (string, bool) {
	if !startsWith(raw, '"') {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

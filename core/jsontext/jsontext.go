// Package jsontext reads and repairs JSON as text.
//
// Event ingestion, request bodies and stored properties handle JSON that is
// mostly passed on unchanged. Decoding it into values would cost allocations and
// lose the digits of numbers. So this package walks the text and returns parts
// of it.
//
// Scanner is for text from outside: it validates every byte, bounds the nesting,
// and finds what stores cannot hold. AppendClean and Sanitize repair such text.
// Cursor is for text that passed a Scanner or was stored: it trusts the text and
// is faster. String, Unquote and AppendString convert between JSON strings and
// their values; Equal compares texts by value.
//
// It does not interpret numbers and does not index objects.
package jsontext

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Marshal is json.Marshal without the escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), nil
}

// Sorted returns a JSON value without white space and with the names of its objects
// in order: one text for equal values. Numbers keep their digits. Invalid text is
// returned unchanged.
func Sorted(raw []byte) string {
	v, err := decodeAny(raw)
	if err != nil {
		return string(raw)
	}
	text, err := Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

// Equal reports whether two JSON texts have the same value. The order of names
// and white space do not matter, the digits of numbers do. Invalid texts are
// equal only if their bytes are.
func Equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeAny(a)
	y, errY := decodeAny(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeAny(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

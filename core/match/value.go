package match

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/jsontext"
)

// Kind is the JSON type of a value.
type Kind uint8

// The kinds of values. The zero Value is Missing, an absent property, which
// differs from null.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Value is one property value: a view of JSON text. It caches its number, so
// one goroutine at a time may use it.
type Value struct {
	kind    Kind
	numeric numeric
	num     float64
	text    string // the characters of a string, the JSON text of other kinds
}

// numeric is the state of the cached number of a Value.
type numeric uint8

const (
	notTried numeric = iota
	isNumber
	notNumber
)

// Text returns the value of a JSON string.
func Text(s string) Value { return Value{kind: String, text: s} }

// FromJSON returns a view of a parsed JSON value; nil is Missing. The text of
// numbers, lists and objects is appended to arena, which is returned. The value
// is valid until the parser of v is reused or the arena is overwritten.
func FromJSON(v *fastjson.Value, arena []byte) (Value, []byte) {
	if v == nil {
		return Value{}, arena
	}
	switch v.Type() {
	case fastjson.TypeNull:
		return Value{kind: Null, text: "null"}, arena
	case fastjson.TypeTrue:
		return Value{kind: Bool, text: "true"}, arena
	case fastjson.TypeFalse:
		return Value{kind: Bool, text: "false"}, arena
	case fastjson.TypeString:
		return Value{kind: String, text: view(v.GetStringBytes())}, arena
	case fastjson.TypeNumber:
		return numberFromJSON(v, arena)
	default:
		return containerFromJSON(v, arena)
	}
}

func containerFromJSON(v *fastjson.Value, arena []byte) (Value, []byte) {
	start := len(arena)
	arena = jsontext.AppendJSON(arena, v)
	kind := Array
	if v.Type() == fastjson.TypeObject {
		kind = Object
	}
	return Value{kind: kind, text: view(arena[start:])}, arena
}

func numberFromJSON(v *fastjson.Value, arena []byte) (Value, []byte) {
	start := len(arena)
	arena = v.MarshalTo(arena)
	token := view(arena[start:])
	if plainDigits(token) {
		return Value{kind: Number, text: token}, arena
	}
	n, err := strconv.ParseFloat(token, 64)
	if err != nil || n != n {
		return Value{kind: Null, text: "null"}, arena[:start]
	}
	integer := token == "-0" // the only integer without plain digits
	arena = appendNumber(arena[:start], n, integer)
	return Value{kind: Number, numeric: isNumber, num: n, text: view(arena[start:])}, arena
}

// Parse reads one JSON text, for tests and for filters. It fails on invalid
// JSON.
func Parse(raw []byte) (Value, error) {
	p, err := fastjson.ParseBytes(raw)
	if err != nil {
		return Value{}, err
	}
	v, _ := FromJSON(p, nil)
	return v, nil
}

// Kind returns the JSON type of the value.
func (v *Value) Kind() Kind { return v.kind }

// Content returns the characters of a string, the JSON text of other kinds, and
// "" for Missing. It is valid for as long as the value.
func (v *Value) Content() string { return v.text }

// Clone returns a copy of v that does not share memory with its source.
func (v *Value) Clone() Value {
	c := *v
	c.text = strings.Clone(c.text)
	return c
}

// AppendTo appends the JSON text of the value; Missing appends null.
func (v *Value) AppendTo(dst []byte) []byte {
	switch v.kind {
	case Missing:
		return append(dst, "null"...)
	case String:
		return jsontext.AppendString(dst, v.text)
	default:
		return append(dst, v.text...)
	}
}

// Identifier returns the value as an identifier: a string unchanged, the text of
// a number, and "" for other kinds.
func (v *Value) Identifier() string {
	if v.kind == String || v.kind == Number {
		return loose(v)
	}
	return ""
}

// Same reports whether both are the same JSON value.
func (v *Value) Same(w *Value) bool { return v.kind == w.kind && v.text == w.text }

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

package persons

import (
	"encoding/json"
	"strings"
)

// member is one name of a JSON object and the exact text of its value.
type member struct{ key, val string }

// object is a JSON object as its members in order. Values keep their text, so
// the digits of a number come back as they were sent. A name that stands twice
// keeps its first place and its last value.
type object struct {
	members []member
	index   map[string]int // built when a linear look would be long; else nil
}

// indexFrom is the number of members from which a map beats comparing.
const indexFrom = 64

// parseObject reads a JSON object. Text that is none gives an empty object and
// false: what is stored and what ingestion hands over is valid JSON, so false
// means "some other kind of value".
func parseObject(raw string) (object, bool) {
	var o object
	c, ok := openObject(raw)
	if !ok {
		return o, false
	}
	for c.next() {
		o.set(c.key, c.val)
	}
	return o, !c.bad
}

// parseStored reads what text has written, in which no name stands twice.
func parseStored(raw string) object {
	o := object{members: make([]member, 0, 40)}
	c, _ := openObject(raw)
	for c.next() {
		o.members = append(o.members, member{c.key, c.val})
	}
	if len(o.members) >= indexFrom {
		o.reindex()
	}
	return o
}

func (o *object) find(key string) int {
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range o.members {
		if o.members[i].key == key {
			return i
		}
	}
	return -1
}

func (o *object) has(key string) bool { return o.find(key) >= 0 }

// get returns the text of key's value, or "" when there is no such key.
func (o *object) get(key string) string {
	if i := o.find(key); i >= 0 {
		return o.members[i].val
	}
	return ""
}

// set gives key the value val and reports whether that changed anything.
func (o *object) set(key, val string) bool {
	if i := o.find(key); i >= 0 {
		changed := o.members[i].val != val
		o.members[i].val = val
		return changed
	}
	o.members = append(o.members, member{key, val})
	switch {
	case o.index != nil:
		o.index[key] = len(o.members) - 1
	case len(o.members) == indexFrom:
		o.reindex()
	}
	return true
}

func (o *object) reindex() {
	o.index = make(map[string]int, 2*len(o.members))
	for i := range o.members {
		o.index[o.members[i].key] = i
	}
}

// remove takes the keys away that are there.
func (o *object) remove(keys ...string) {
	gone := make(map[string]bool, len(keys))
	for _, key := range keys {
		if o.has(key) {
			gone[key] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	kept := make([]member, 0, len(o.members)-len(gone))
	for _, m := range o.members {
		if !gone[m.key] {
			kept = append(kept, m)
		}
	}
	o.members, o.index = kept, nil
	if len(kept) >= indexFrom {
		o.reindex()
	}
}

// clone returns an object that shares nothing that changes with o.
func (o *object) clone() object {
	c := object{members: append([]member(nil), o.members...)}
	if len(c.members) >= indexFrom {
		c.reindex()
	}
	return c
}

// text is the JSON text of the object.
func (o *object) text() string {
	b := make([]byte, 0, o.size())
	b = append(b, '{')
	for i := range o.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, o.members[i].key)
		b = append(b, ':')
		b = append(b, o.members[i].val...)
	}
	return string(append(b, '}'))
}

// size is about the length of text.
func (o *object) size() int {
	n := 2
	for i := range o.members {
		n += len(o.members[i].key) + len(o.members[i].val) + 4
	}
	return n
}

// appendQuoted appends s as a JSON string.
func appendQuoted(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			q, err := json.Marshal(s)
			if err != nil { // a string always encodes
				return append(b, `""`...)
			}
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// unquote returns what a JSON string reads as; false when val is no string.
func unquote(val string) (string, bool) {
	if len(val) < 2 || val[0] != '"' || val[len(val)-1] != '"' {
		return "", false
	}
	inner := val[1 : len(val)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	var s string
	if json.Unmarshal([]byte(val), &s) != nil {
		return "", false
	}
	return s, true
}

// scalar is the text form of a value where the protocol wants a string: a
// string is itself, everything else its JSON text.
func scalar(val string) string {
	if s, ok := unquote(val); ok {
		return s
	}
	return val
}

// truthy tells whether a client in JavaScript would call the value true.
func truthy(val string) bool {
	switch val {
	case "", "null", "false", "0", "-0", "0.0", `""`:
		return false
	}
	return true
}

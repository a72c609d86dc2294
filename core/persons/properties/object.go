package properties

import (
	"github.com/guidonhq/guidon/core/jsontext"
)

// Member is a name of a JSON object and the exact text of its value.
type Member struct{ Key, Value string }

// Object is a JSON object as its members in order. Values keep their text. A
// repeated name keeps its first place and its last value. The zero Object is
// empty.
type Object struct {
	Members []Member
	index   map[string]int // built from indexFrom members on
}

// indexFrom is the number of members from which a map is faster than a scan.
const indexFrom = 64

// Parse reads a JSON object. Any other value gives an empty object and false.
func Parse(raw string) (Object, bool) {
	var o Object
	c, ok := jsontext.OpenObject(raw)
	if !ok {
		return o, false
	}
	for c.Next() {
		o.Set(c.Key, c.Value)
	}
	return o, !c.Bad
}

// ParseStored reads the output of JSON, which repeats no name.
func ParseStored(raw string) Object {
	o := Object{Members: make([]Member, 0, 40)}
	c, _ := jsontext.OpenObject(raw)
	for c.Next() {
		o.Members = append(o.Members, Member{c.Key, c.Value})
	}
	if len(o.Members) >= indexFrom {
		o.reindex()
	}
	return o
}

func (o *Object) find(key string) int {
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range o.Members {
		if o.Members[i].Key == key {
			return i
		}
	}
	return -1
}

// Has reports whether the object has key.
func (o *Object) Has(key string) bool { return o.find(key) >= 0 }

// Get returns the text of key's value, "" if the key is missing.
func (o *Object) Get(key string) string {
	if i := o.find(key); i >= 0 {
		return o.Members[i].Value
	}
	return ""
}

// Set gives key the value val and reports whether that changed anything.
func (o *Object) Set(key, val string) bool {
	if i := o.find(key); i >= 0 {
		changed := o.Members[i].Value != val
		o.Members[i].Value = val
		return changed
	}
	o.Members = append(o.Members, Member{key, val})
	switch {
	case o.index != nil:
		o.index[key] = len(o.Members) - 1
	case len(o.Members) == indexFrom:
		o.reindex()
	}
	return true
}

func (o *Object) reindex() {
	o.index = make(map[string]int, 2*len(o.Members))
	for i := range o.Members {
		o.index[o.Members[i].Key] = i
	}
}

// Remove deletes the given keys.
func (o *Object) Remove(keys ...string) {
	removed := make(map[string]bool, len(keys))
	for _, key := range keys {
		if o.Has(key) {
			removed[key] = true
		}
	}
	if len(removed) == 0 {
		return
	}
	kept := make([]Member, 0, len(o.Members)-len(removed))
	for _, m := range o.Members {
		if !removed[m.Key] {
			kept = append(kept, m)
		}
	}
	o.Members, o.index = kept, nil
	if len(kept) >= indexFrom {
		o.reindex()
	}
}

// Clone returns a copy that does not change with o.
func (o *Object) Clone() Object {
	c := Object{Members: append([]Member(nil), o.Members...)}
	if len(c.Members) >= indexFrom {
		c.reindex()
	}
	return c
}

// JSON returns the JSON text of the object.
func (o *Object) JSON() string {
	b := make([]byte, 0, o.Size())
	b = append(b, '{')
	for i := range o.Members {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, o.Members[i].Key)
		b = append(b, ':')
		b = append(b, o.Members[i].Value...)
	}
	return string(append(b, '}'))
}

// Size is about the length of the JSON text.
func (o *Object) Size() int {
	n := 2
	for i := range o.Members {
		n += len(o.Members[i].Key) + len(o.Members[i].Value) + 4
	}
	return n
}

// Text returns a value as the protocol reads it where it wants a string: the
// value of a JSON string, the JSON text of everything else.
func Text(val string) string {
	if s, ok := jsontext.Unquote(val); ok {
		return s
	}
	return val
}

// Truthy reports whether a value is true in JavaScript.
func Truthy(val string) bool {
	switch val {
	case "", "null", "false", "0", "-0", "0.0", `""`:
		return false
	}
	return true
}

// Package items edits single items of a request before they are kept.
//
// Capture keeps items as the client sent them. A few cannot be: an item that names
// an address gets the location of that address, and an item of a visitor without
// cookies gets the id that stands for the visitor. Edit copies all other items byte
// for byte, and of an edited item all members that do not change.
//
// The text is valid JSON in the sense of capture, which repairs nothing: it may hold
// NaN and invalid UTF-8, and names may occur twice. The package is pure.
package items

import (
	"bytes"

	"github.com/guidonhq/guidon/core/jsontext"
)

// Edit calls edit for each object among the items, an array or a single item, and
// appends the items to dst. edit must not keep the item. Text that is not valid
// stays what it is.
func Edit(dst, items []byte, edit func(*Item)) []byte {
	var s jsontext.Scanner
	var it Item
	start := len(dst)
	s.Reset(items)
	if s.Peek() != '[' {
		return appendEdited(dst, items, &it, edit)
	}
	s.Open()
	dst = append(dst, '[')
	for first := true; s.Element(first); first = false {
		if !first {
			dst = append(dst, ',')
		}
		s.Peek()
		dst = appendEdited(dst, s.Value(), &it, edit)
	}
	if s.Bad {
		return append(dst[:start], items...)
	}
	return append(dst, ']')
}

func appendEdited(dst, raw []byte, it *Item, edit func(*Item)) []byte {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return append(dst, raw...)
	}
	it.read(raw)
	edit(it)
	if !it.fields.changed && !it.properties.changed {
		return append(dst, raw...)
	}
	if it.properties.changed {
		it.fields.Set("properties", it.properties.Append(nil))
	}
	return it.fields.Append(dst)
}

// Item is one item: its fields, and its properties.
type Item struct {
	fields, properties Object
}

// Fields returns the members of the item. Its properties are read and changed by
// Properties.
func (it *Item) Fields() *Object { return &it.fields }

// Properties returns the properties of the item; none if it has no object of them.
func (it *Item) Properties() *Object { return &it.properties }

func (it *Item) read(raw []byte) {
	it.fields.Read(raw)
	it.properties.Read(it.fields.Get("properties"))
}

// Object is a JSON object as its members.
type Object struct {
	members []member
	changed bool
}

// member is a member of an object. raw is the name as sent, without quotes.
type member struct {
	name       string
	raw, value []byte
}

// Read replaces the members by those of raw. Anything but an object has none.
func (o *Object) Read(raw []byte) {
	o.members, o.changed = o.members[:0], false
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	var s jsontext.Scanner
	s.Reset(raw)
	s.Peek()
	s.Open()
	for name, ok := s.Member(true); ok; name, ok = s.Member(false) {
		o.members = append(o.members, member{string(name.Resolve(nil)), name.Raw, s.Value()})
	}
}

// Get returns the JSON text of a member: the last one of the name, nil without one.
func (o *Object) Get(name string) []byte {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].name == name {
			return o.members[i].value
		}
	}
	return nil
}

// Set replaces the members of a name, or adds one.
func (o *Object) Set(name string, value []byte) {
	o.Remove(name)
	o.members = append(o.members, member{name, []byte(name), value})
	o.changed = true
}

// Remove removes the members of a name.
func (o *Object) Remove(name string) {
	kept := o.members[:0]
	for _, m := range o.members {
		if m.name != name {
			kept = append(kept, m)
		}
	}
	o.changed = o.changed || len(kept) < len(o.members)
	o.members = kept
}

// Append appends the object as JSON.
func (o *Object) Append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), m.raw...), `":`...)
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

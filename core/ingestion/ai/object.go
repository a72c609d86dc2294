package ai

import (
	"encoding/json"
	"strings"
)

// maxNames is the number of names of a path that lead into objects. The rest of a
// longer path is one name.
const maxNames = 4

// object is a JSON object. A value in which a part sets a property is decoded once,
// however many parts do so.
type object struct {
	values map[string]json.RawMessage
	inner  map[string]*object // values that were decoded; nil for others
	limit  int                // bytes of a value that is decoded
}

func newObject(values map[string]json.RawMessage, limit int) *object {
	return &object{values: values, inner: map[string]*object{}, limit: limit}
}

// child returns the value of a name if it is an object, else nil. An object that will
// not fit an event counts as another value.
func (o *object) child(name string) *object {
	if c, ok := o.inner[name]; ok {
		return c
	}
	values := map[string]json.RawMessage{}
	raw := o.values[name]
	if len(raw) == 0 || len(raw) > o.limit || raw[0] != '{' || json.Unmarshal(raw, &values) != nil {
		o.inner[name] = nil
		return nil
	}
	c := newObject(values, o.limit)
	o.inner[name] = c
	return c
}

// put sets a property that is not there yet. If the first name of a path with dots is
// an object, it goes into that, to a depth of names.
func (o *object) put(path string, value json.RawMessage, names int) error {
	first, rest, nested := strings.Cut(path, ".")
	if nested && rest != "" && names > 1 {
		if c := o.child(first); c != nil {
			return c.put(rest, value, names-1)
		}
	}
	if _, ok := o.values[path]; ok {
		return malformed("The event has the property " + quote(path) + " already.")
	}
	o.set(path, value)
	return nil
}

// set sets a property.
func (o *object) set(name string, value json.RawMessage) {
	delete(o.inner, name)
	o.values[name] = value
}

// replace replaces the property that put has set.
func (o *object) replace(path string, value json.RawMessage, names int) {
	if _, ok := o.values[path]; ok {
		o.set(path, value)
		return
	}
	first, rest, _ := strings.Cut(path, ".")
	if c := o.child(first); c != nil && names > 1 {
		c.replace(rest, value, names-1)
	}
}

// encode returns the object as JSON.
func (o *object) encode() (json.RawMessage, error) {
	for name, c := range o.inner {
		if c == nil {
			continue
		}
		raw, err := c.encode()
		if err != nil {
			return nil, err
		}
		o.values[name] = raw
	}
	return json.Marshal(o.values)
}

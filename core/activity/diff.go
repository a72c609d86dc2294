package activity

import (
	"bytes"
	"encoding/json"

	"github.com/guidonhq/guidon/core/jsontext"
)

// Diff returns the fields that differ between two states of an item, in the
// order of their JSON encoding. A state is a struct of what users decide about
// the item; fields are compared by their JSON value. States that cannot be
// encoded as JSON objects have no changes.
func Diff[T any](scope Scope, before, after T) []Change {
	was, errWas := fieldsOf(before)
	is, errIs := fieldsOf(after)
	if errWas != nil || errIs != nil {
		return nil
	}
	var changes []Change
	for _, name := range is.names {
		from, to := was.get(name), is.get(name)
		if jsontext.Equal(from, to) {
			continue
		}
		changes = append(changes, Change{Type: scope, Action: actionOf(from, to), Field: name, Before: from, After: to})
	}
	return changes
}

func actionOf(from, to json.RawMessage) string {
	switch {
	case string(from) == "null":
		return "created"
	case string(to) == "null":
		return "deleted"
	}
	return "changed"
}

// fields is a JSON object that keeps the order of its names.
type fields struct {
	names  []string
	values map[string]json.RawMessage
}

func (f *fields) get(name string) json.RawMessage {
	if v, ok := f.values[name]; ok {
		return v
	}
	return json.RawMessage("null")
}

func fieldsOf(state any) (*fields, error) {
	raw, err := jsontext.Marshal(state)
	if err != nil {
		return nil, err
	}
	f := &fields{}
	if err := json.Unmarshal(raw, &f.values); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, err = dec.Token() // the opening brace
	for err == nil && dec.More() {
		var name json.Token
		if name, err = dec.Token(); err != nil {
			break
		}
		f.names = append(f.names, name.(string))
		var value json.RawMessage
		err = dec.Decode(&value)
	}
	return f, err
}

package definitionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// The kinds of references in a definition.
const (
	RefCohort    = "cohort"
	RefFlag      = "flag"
	RefDashboard = "dashboard"
	RefGroupType = "group type"
)

// MissingError is a reference to a definition that does not exist, or not yet.
type MissingError struct{ Kind, Name string }

// Error names the definition.
func (e *MissingError) Error() string { return fmt.Sprintf("%s %q does not exist", e.Kind, e.Name) }

// groupFields are the fields with the index of a group type.
var groupFields = []string{"group_type_index", "aggregation_group_type_index"}

// Name replaces the ids of a server in decoded JSON by names, and removes the ids of
// steps. find returns the name for an id; without one the id stays.
func Name(v any, find func(kind, id string) (name string, ok bool)) {
	name := func(o map[string]any, field, kind string) {
		if label, ok := find(kind, fmt.Sprint(o[field])); ok && o[field] != nil {
			o[field] = label
		}
	}
	walk(v, func(o map[string]any) {
		if isCohortFilter(o) {
			name(o, "value", RefCohort)
			delete(o, "cohort_name")
		}
		if o["type"] == "flag" {
			name(o, "key", RefFlag)
		}
		for _, field := range groupFields {
			name(o, field, RefGroupType)
		}
		if steps, ok := o["steps"].([]any); ok {
			for _, s := range steps {
				if step, ok := s.(map[string]any); ok {
					delete(step, "id")
				}
			}
		}
		if list, ok := o["analytics_dashboards"].([]any); ok {
			for i := range list {
				if label, ok := find(RefDashboard, fmt.Sprint(list[i])); ok {
					list[i] = label
				}
			}
		}
	})
}

// Resolve returns the body of a definition with the ids of a server for names. find
// returns the id for a name, nil without one, which is a MissingError.
func Resolve(body json.RawMessage, find func(kind, name string) any) (json.RawMessage, error) {
	var v any
	if err := Decode(body, &v); err != nil {
		return nil, err
	}
	r := resolver{find: find}
	walk(v, r.object)
	if r.err != nil {
		return nil, r.err
	}
	return json.Marshal(v)
}

// WithRecord is Resolve for a scheduled change: it adds the id of the flag.
func WithRecord(it Item, find func(kind, name string) any) (json.RawMessage, error) {
	body, err := Resolve(it.Body, find)
	if err != nil {
		return nil, err
	}
	id := find(RefFlag, it.Name)
	if id == nil {
		return nil, &MissingError{RefFlag, it.Name}
	}
	var change map[string]any
	if err := Decode(body, &change); err != nil {
		return nil, err
	}
	change["record_id"] = fmt.Sprint(id)
	return json.Marshal(change)
}

// Decode decodes JSON with the digits of its numbers.
func Decode(text []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(out)
}

type resolver struct {
	find func(kind, name string) any
	err  error
}

// id returns the id for a name.
func (r *resolver) id(kind string, name any) any {
	label, ok := name.(string)
	if !ok {
		r.fail(fmt.Errorf("%v is not the name of a %s: definitions refer to others by name", name, kind))
		return name
	}
	id := r.find(kind, label)
	if id == nil {
		r.fail(&MissingError{kind, label})
	}
	return id
}

// fail keeps the first error, of which one that is no MissingError comes first.
func (r *resolver) fail(err error) {
	_, missing := errors.AsType[*MissingError](r.err)
	if r.err == nil || missing {
		r.err = err
	}
}

func (r *resolver) object(o map[string]any) {
	if isCohortFilter(o) {
		o["value"] = r.id(RefCohort, o["value"])
	}
	if o["type"] == "flag" {
		o["key"] = fmt.Sprint(r.id(RefFlag, o["key"]))
	}
	for _, field := range groupFields {
		if o[field] != nil {
			o[field] = r.id(RefGroupType, o[field])
		}
	}
	if list, ok := o["analytics_dashboards"].([]any); ok {
		for i := range list {
			list[i] = r.id(RefDashboard, list[i])
		}
	}
}

// isCohortFilter reports whether a filter tests the membership in a cohort.
func isCohortFilter(o map[string]any) bool {
	kind, _ := o["type"].(string)
	_, hasValue := o["value"]
	return hasValue && (kind == "cohort" || kind == "static-cohort" || kind == "precalculated-cohort")
}

// walk calls fn for each object within v.
func walk(v any, fn func(o map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		fn(v)
		for _, child := range v {
			walk(child, fn)
		}
	case []any:
		for _, child := range v {
			walk(child, fn)
		}
	}
}

// Failure is an item that was not applied.
type Failure struct {
	Item Item
	Err  error
}

// InOrder calls apply for each item. Items that fail with a MissingError are tried again
// after the others, as long as one succeeds: definitions may refer to later ones.
func InOrder(items []Item, apply func(Item) error) []Failure {
	var failures []Failure
	for len(items) > 0 {
		var waiting []Item
		var missing []Failure
		for _, it := range items {
			err := apply(it)
			if _, ok := errors.AsType[*MissingError](err); ok {
				waiting, missing = append(waiting, it), append(missing, Failure{it, err})
			} else if err != nil {
				failures = append(failures, Failure{it, err})
			}
		}
		if len(waiting) == len(items) {
			return append(failures, missing...)
		}
		items = waiting
	}
	return failures
}

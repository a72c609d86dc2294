// Package propertytest evaluates the property filters of a list on events and the persons
// who sent them.
package propertytest

import (
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// Person is the kind of a filter on properties of the person; others are on the event.
const Person = "person"

// Test has the filters of a list. It is not safe for concurrent use.
type Test struct {
	event, person *propertyfilter.All
	persons       bool // there are filters of person properties
}

// New returns the test of all items.
func New(items []propertyfilter.Item, env match.Env) *Test {
	var events, persons []*match.Filter
	for _, item := range items {
		if item.Kind == Person {
			persons = append(persons, item.Filter)
		} else {
			events = append(events, item.Filter)
		}
	}
	return &Test{propertyfilter.NewAll(events, env), propertyfilter.NewAll(persons, env), len(persons) > 0}
}

// Match reports whether the properties of an event, and those of its person as JSON, nil
// without a person, pass all filters.
func (t *Test) Match(event string, person *string) bool {
	if !t.event.Match([]byte(event)) {
		return false
	}
	if !t.persons {
		return true
	}
	properties := "{}"
	if person != nil {
		properties = *person
	}
	return t.person.Match([]byte(properties))
}

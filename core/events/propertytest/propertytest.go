// Package propertytest evaluates the property filters of a list on events and the persons
// who sent them.
package propertytest

import (
	"time"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// Person is the kind of a filter on properties of the person; others are on the event.
const Person = "person"

// Test has the filters of a list. It is not safe for concurrent use.
type Test struct {
	event, person *propertyfilter.All // nil without filters of this kind
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
	t := &Test{}
	if len(events) > 0 {
		t.event = propertyfilter.NewAll(events, env)
	}
	if len(persons) > 0 {
		t.person = propertyfilter.NewAll(persons, env)
	}
	return t
}

// ReadsPersons reports whether there are filters of properties of persons.
func (t *Test) ReadsPersons() bool { return t.person != nil }

// SetNow changes the reference of relative dates.
func (t *Test) SetNow(now time.Time) {
	for _, all := range []*propertyfilter.All{t.event, t.person} {
		if all != nil {
			all.SetNow(now)
		}
	}
}

// Match reports whether the properties of an event, and those of its person as JSON, nil
// without a person, pass all filters.
func (t *Test) Match(event string, person *string) bool {
	if t.event != nil && !t.event.Match([]byte(event)) {
		return false
	}
	if t.person == nil {
		return true
	}
	properties := "{}"
	if person != nil {
		properties = *person
	}
	return t.person.Match([]byte(properties))
}

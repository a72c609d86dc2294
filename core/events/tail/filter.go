package tail

import (
	"strconv"
	"time"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// filter selects the events of a viewer. It reuses memory and is not safe for concurrent
// use.
type filter struct {
	name, distinctID string
	person           string // uuid
	personRow        int64
	event, ofPerson  *propertyfilter.All
	details          bool // needs the persons of the events
}

// newFilter returns the filter of the name, the distinct id, the person and the properties
// of f.
func newFilter(f *events.Filter) *filter {
	out := &filter{name: f.Event, distinctID: f.DistinctID, person: f.PersonID}
	if n, err := strconv.ParseInt(f.PersonID, 10, 64); err == nil {
		out.person, out.personRow, out.details = "", n, true
	}
	var ofEvent, ofPerson []*match.Filter
	for _, item := range f.Properties {
		if item.Kind == events.PersonProperty {
			ofPerson = append(ofPerson, item.Filter)
		} else {
			ofEvent = append(ofEvent, item.Filter)
		}
	}
	var env match.Env // setNow
	if len(ofEvent) > 0 {
		out.event = propertyfilter.NewAll(ofEvent, env)
	}
	if len(ofPerson) > 0 {
		out.ofPerson, out.details = propertyfilter.NewAll(ofPerson, env), true
	}
	return out
}

// setNow sets the reference of relative dates.
func (f *filter) setNow(t time.Time) {
	for _, all := range []*propertyfilter.All{f.event, f.ofPerson} {
		if all != nil {
			all.SetNow(t)
		}
	}
}

func (f *filter) matches(r *events.Record) bool {
	switch {
	case f.name != "" && r.Event != f.name, f.distinctID != "" && r.DistinctID != f.distinctID:
		return false
	case f.person != "" && (r.CurrentPerson == nil || *r.CurrentPerson != f.person):
		return false
	case f.personRow != 0 && r.PersonRow != f.personRow:
		return false
	case f.event != nil && !f.event.Match([]byte(r.Properties)):
		return false
	case f.ofPerson == nil:
		return true
	}
	properties := "{}" // of an event without a person
	if r.PersonProperties != nil {
		properties = *r.PersonProperties
	}
	return f.ofPerson.Match([]byte(properties))
}

package tail

import (
	"strconv"
	"time"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/propertytest"
	"github.com/guidonhq/guidon/core/match"
)

// filter selects the events of a viewer. It reuses memory and is not safe for concurrent
// use.
type filter struct {
	name, distinctID string
	person           string // uuid
	personRow        int64
	properties       *propertytest.Test
	details          bool // needs the persons of the events

	budget match.Budget // of the property filters
	left   int64        // units of it at the last refusal
}

// newFilter returns the filter of the name, the distinct id, the person and the properties
// of f.
func newFilter(f *events.Filter) *filter {
	out := &filter{name: f.Event, distinctID: f.DistinctID, person: f.PersonID}
	if n, err := strconv.ParseInt(f.PersonID, 10, 64); err == nil {
		out.person, out.personRow, out.details = "", n, true
	}
	out.properties = propertytest.New(f.Properties, match.Env{Budget: &out.budget}) // begin sets the time
	out.details = out.details || out.properties.ReadsPersons()
	return out
}

// begin starts a look at events with a new budget. t is the reference of relative dates.
func (f *filter) begin(t time.Time) {
	f.left = maxFilterWork
	f.budget.Reset(f.left)
	f.properties.SetNow(t)
}

// tooCostly reports whether the last event does not match because its properties need more
// work than is left, or have a text that is too long for a regular expression.
func (f *filter) tooCostly() bool {
	if f.budget.Refusal() == match.NotRefused {
		return false
	}
	f.left -= f.budget.Spent()
	f.budget.Reset(f.left) // a cheaper event may still match
	return true
}

func (f *filter) matches(r *events.Record) bool {
	switch {
	case f.name != "" && r.Event != f.name, f.distinctID != "" && r.DistinctID != f.distinctID:
		return false
	case f.person != "" && (r.CurrentPerson == nil || *r.CurrentPerson != f.person):
		return false
	case f.personRow != 0 && r.PersonRow != f.personRow:
		return false
	}
	return f.properties.Match(r.Properties, r.PersonProperties)
}

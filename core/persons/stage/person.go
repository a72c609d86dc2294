package stage

import (
	"time"

	"github.com/guidonhq/guidon/core/persons/properties"
)

// person is a person during a batch.
type person struct {
	id         int64 // 0 until stored
	uuid       string
	createdAt  int64 // unix microseconds
	identified bool
	version    int64

	stored row     // as in the database; zero if not stored
	next   row     // to be stored; set by diff
	into   *person // the person it was merged into, nil if none

	props  properties.Object
	parsed bool
	dirty  bool // props may differ from the stored ones
}

// row is the part of a row of persons that the stage may change.
type row struct {
	properties string
	createdAt  int64
	identified bool
}

// root follows merges to the remaining person.
func (p *person) root() *person {
	for p.into != nil {
		p = p.into
	}
	return p
}

// object returns the properties, parsed on the first call.
func (p *person) object() *properties.Object {
	if !p.parsed {
		p.props = properties.ParseStored(p.stored.properties)
		p.parsed = true
	}
	return &p.props
}

// row returns the row to store.
func (p *person) row() row {
	r := row{properties: p.stored.properties, createdAt: p.createdAt, identified: p.identified}
	if p.dirty {
		r.properties = p.props.JSON()
	}
	return r
}

// searchText returns the value of the column label, nil for NULL.
func (p *person) searchText() *string { return nullable(p.object().SearchText()) }

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// link assigns a distinct id to a person.
type link struct {
	distinctID string
	person     *person
	position   int // among the links of the batch
}

// merge makes from a part of into.
type merge struct{ from, into *person }

// toMicros returns t as the database keeps it.
func toMicros(t time.Time) int64 { return t.UnixMicro() }

// Package persons keeps the persons and groups of projects.
//
// A person is a set of distinct ids with properties. The ingestion worker calls
// Process for each batch; package stage below applies it and package properties
// holds the JSON objects that both work on. This package answers everything
// else: lists, lookups, deletion and splitting of persons, groups and their
// types, the HTTP API, and the cached properties that flags and actions read.
//
// An event keeps its distinct id permanently. The person of a distinct id is
// looked up at read time in the table person_distinct_ids: a merge moves the
// ids of one person to the other, and with them all past events. A distinct id
// without a person (events with $process_person_profile false) stands for
// itself; PersonUUID is the id that its person would get.
//
// Properties and GroupProperties answer from a small cache. Changes of this
// process remove entries after the commit; changes of other nodes show after
// Config.CacheTTL, on Postgres after Config.SharedCacheTTL if that is shorter.
package persons

import (
	"time"

	"github.com/guidonhq/guidon/core/persons/properties"
	"github.com/guidonhq/guidon/core/persons/stage"
)

// Person is one person of a project.
type Person struct {
	ID           int64
	UUID         string
	DistinctIDs  []string // in the order they were added
	Properties   []byte   // a JSON object; numbers keep their digits
	CreatedAt    time.Time
	IsIdentified bool
	Version      int64 // grows with each stored change
}

// Ref identifies a person.
type Ref struct {
	ID   int64
	UUID string
}

// Group is a group of a project, such as a company or a workspace.
type Group struct {
	TypeIndex  int
	Key        string
	Properties []byte // a JSON object
	CreatedAt  time.Time
}

// GroupType is a kind of group. Filters of flags name it by Index, which runs
// from 0 to the limit of the project.
type GroupType struct {
	Name      string
	Index     int
	Singular  *string // display name of one group, nil if unset
	Plural    *string // display name of several groups, nil if unset
	CreatedAt time.Time
}

// Name returns the first name among the properties, or a distinct id.
func (p *Person) Name() string {
	o, _ := properties.Parse(string(p.Properties))
	name := o.DisplayName()
	if name == "" && len(p.DistinctIDs) > 0 {
		name = p.DistinctIDs[0]
	}
	return name
}

// PersonUUID returns the uuid of the person of a distinct id: the one the
// person is created with, and the one of a distinct id without a person.
func PersonUUID(projectID int64, distinctID string) string {
	return stage.PersonUUID(projectID, distinctID)
}

// CopiedPropertyNames returns the person properties that hold copies of an event
// property: the latest value and the first one; nil for properties that are
// not copied.
func CopiedPropertyNames(property string) []string { return stage.CopiedPropertyNames(property) }

// Package changelog records which flags, cohorts and actions of a project
// changed, for clients that follow the changes (core/changes).
//
// Record belongs in the transaction of the change: a change without a record and
// a record without a change do not exist. It advances the revision of the project
// in a row that stays locked until the end of the transaction, so that records
// become visible in the order of their revisions, and a reader that has seen a
// revision misses none before it.
//
// The newest 1,000 records of a project are kept. Clients that ask for older ones
// load everything again. The package knows nothing of the items themselves.
package changelog

import "time"

// Kind is the kind of a changed item.
type Kind string

// The kinds. They are the objects of the scopes that may read them, except the last
// three, which have no item: group types of a project, its time zone, and operators of
// plugins that its flags or cohorts use.
const (
	Flag       Kind = "feature_flag"
	Cohort     Kind = "cohort"
	Action     Kind = "action"
	GroupTypes Kind = "group_types"
	Project    Kind = "project"
	Operators  Kind = "operators"
)

// What was done to an item.
const (
	Created = "created"
	Updated = "updated"
	Deleted = "deleted"
)

// kept is the number of records of a project that are kept at least, and pruning
// the number of records after which older ones are removed.
const (
	kept    = 1000
	pruning = 100
)

// Change is one record.
type Change struct {
	ProjectID int64
	Revision  int64 // from 1; set by Record
	At        time.Time
	Kind      Kind
	ItemID    int64
	Name      string // the key of a flag, the name of others
	Operation string
}

// Head is the newest revision of a project; zero if nothing ever changed.
type Head struct {
	Revision int64
	At       time.Time
}

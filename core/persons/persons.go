// Package persons knows who the distinct ids of events stand for, and which
// groups those people belong to.
//
// A person is a set of distinct ids with properties. The stage (Process) walks
// a batch of events in order, in memory, on top of what one query loaded, and
// writes what changed in a few statements inside the ingestion worker's
// transaction: it creates people, applies $set, $set_once and $unset, follows
// $identify, $create_alias and $merge_dangerously, and keeps group types and
// group properties. Doing the same batch twice leaves the same people.
//
// Two nodes may run the stage at once on Postgres: rows are locked in the
// order of their ids, and an attempt that meets a distinct id, group or group
// type the other node has just made starts again on what is there now.
//
// An event keeps the distinct id it was sent with for ever. Who that is, is
// answered when somebody asks, through the table person_distinct_ids: a merge
// moves the ids of one person to the other, and with them all past events.
// A distinct id without a person (events sent with $process_person_profile
// false) stands for itself; PersonUUID gives it the id its person would get.
//
// Decide and actions read stored properties through Properties and its kin: a
// small cache that the stage empties of what it changed once the transaction
// is committed (AfterCommit).
package persons

import (
	"strconv"
	"time"

	"github.com/google/uuid"
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

// Ref names a person.
type Ref struct {
	ID   int64
	UUID string
}

// Group is one group of a project: a company, a workspace, whatever its type
// stands for.
type Group struct {
	TypeIndex  int
	Key        string
	Properties []byte // a JSON object
	CreatedAt  time.Time
}

// GroupType is a kind of group. Index is its slot, 0 up to the limit of the
// project, by which filters of flags name it.
type GroupType struct {
	Name      string
	Index     int
	Singular  *string // how people call one of it, when somebody said so
	Plural    *string
	CreatedAt time.Time
}

// namespace is the one every client and server of this protocol uses, so that
// an id computed elsewhere for the same project and distinct id is equal.
var namespace = uuid.MustParse("932979b4-65c3-4424-8467-0b66ec27bc22")

// PersonUUID is the id a distinct id without a person goes by, and the id of
// the person that is made for it later.
func PersonUUID(projectID int64, distinctID string) string {
	name := append(strconv.AppendInt(make([]byte, 0, 64), projectID, 10), ':')
	return uuid.NewSHA1(namespace, append(name, distinctID...)).String()
}

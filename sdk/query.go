package sdk

import (
	"context"
	"encoding/json"
	"time"
)

// Querier is implemented by a sink that can answer questions about the events it
// has taken. It is not stable yet: it may change in a way that breaks it.
type Querier interface {
	// DescribeQuery says what can be asked.
	DescribeQuery(ctx context.Context) (QueryCapabilities, error)
	// CountAction counts the events that match. With predicates it cannot compare
	// it counts nothing and returns them in CountResult.Unsupported.
	CountAction(ctx context.Context, q *ActionQuery, bucket time.Duration) (CountResult, error)
	// PeopleOfAction calls page with people who did it, until there are no more,
	// limit people were handed over (0: as many as it likes), or page returns an
	// error, which it then returns.
	PeopleOfAction(ctx context.Context, q *ActionQuery, limit int, cursor []byte, page func(PeoplePage) error) error
}

// QueryCapabilities is what a Querier can be asked.
type QueryCapabilities struct {
	// Fields are what it can compare: "event", "distinct_id", "timestamp",
	// "elements_chain", "properties.*".
	Fields []string
	// Operators are those of property filters that it can compare with.
	Operators []string
	// MaxRange is the longest time span; 0 is no limit.
	MaxRange time.Duration
	// Freshness is how long after its delivery an event is counted, typically.
	Freshness time.Duration
	// People says that PeopleOfAction can be asked.
	People bool
}

// ActionQuery says which events are meant: those of the project in the time span
// that pass any step.
type ActionQuery struct {
	ProjectID int64
	Steps     []QueryStep
	// From is included, To is not.
	From, To time.Time
	// MinSeq asks to look at events up to this sequence number at the least; 0
	// for any.
	MinSeq uint64
	// MaxRowsScanned is when to give up; 0 for never.
	MaxRowsScanned uint64
}

// QueryStep is conditions that an event passes all of.
type QueryStep struct {
	// Event is the event's name; "" for any.
	Event string
	AllOf []Predicate
}

// Predicate is one comparison.
type Predicate struct {
	// Field is one of QueryCapabilities.Fields, the star replaced by a name.
	Field string
	// Operator is that of a property filter: "exact", "icontains".
	Operator string
	Value    json.RawMessage
}

// CountResult is how many events match.
type CountResult struct {
	Matched uint64
	// Buckets are the parts of the time span that have any.
	Buckets []QueryBucket
	// AsOfSeq is up to where everything was looked at.
	AsOfSeq uint64
	// Partial says that the search gave up before its end.
	Partial bool
	// Unsupported are predicates it cannot compare; nothing was counted then.
	Unsupported []Predicate
}

// QueryBucket is a part of the time span.
type QueryBucket struct {
	Start time.Time
	Count uint64
}

// PeoplePage is some of the people.
type PeoplePage struct {
	People []QueryPerson
	// Cursor is where to go on after this page; empty when there is nobody left.
	Cursor  []byte
	AsOfSeq uint64
	// Unsupported are predicates it cannot compare; there is no other page then.
	Unsupported []Predicate
}

// QueryPerson is somebody who did it.
type QueryPerson struct {
	DistinctID          string
	Count               uint64
	FirstSeen, LastSeen time.Time
}

package sdk

import (
	"context"
	"encoding/json"
	"time"
)

// Querier is implemented by a sink that can answer queries about its events. It is not stable yet: it may change in a way that breaks it.
type Querier interface {
	// DescribeQuery returns the supported queries.
	DescribeQuery(ctx context.Context) (QueryCapabilities, error)
	// CountAction counts the events that match. With predicates it cannot compare
	// it counts nothing and returns them in CountResult.Unsupported.
	CountAction(ctx context.Context, q *ActionQuery, bucket time.Duration) (CountResult, error)
	// PeopleOfAction calls page with people with matching events, until there are no more,
	// limit people were passed (0: no limit), or page returns an
	// error, which it then returns.
	PeopleOfAction(ctx context.Context, q *ActionQuery, limit int, cursor []byte, page func(PeoplePage) error) error
}

// QueryCapabilities describes the queries that a Querier supports.
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
	// People is true when PeopleOfAction is supported.
	People bool
}

// ActionQuery selects the events of a project in a time span that match any step.
type ActionQuery struct {
	ProjectID int64
	Steps     []QueryStep
	// From is included, To is not.
	From, To time.Time
	// MinSeq is the sequence number through which events must be included; 0 for
	// none.
	MinSeq uint64
	// MaxRowsScanned limits the rows of the search; 0 is no limit.
	MaxRowsScanned uint64
}

// QueryStep is a set of conditions of which an event must match all.
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

// CountResult is the number of matching events.
type CountResult struct {
	Matched uint64
	// Buckets are the parts of the time span that have any.
	Buckets []QueryBucket
	// AsOfSeq is the sequence number through which all events were searched.
	AsOfSeq uint64
	// Partial is true when the search stopped at a limit.
	Partial bool
	// Unsupported are predicates it cannot compare; nothing was counted then.
	Unsupported []Predicate
}

// QueryBucket is a part of the time span.
type QueryBucket struct {
	Start time.Time
	Count uint64
}

// PeoplePage is one page of people.
type PeoplePage struct {
	People []QueryPerson
	// Cursor continues after this page; empty on the last one.
	Cursor  []byte
	AsOfSeq uint64
	// Unsupported are predicates it cannot compare; the result has one page then.
	Unsupported []Predicate
}

// QueryPerson is a person with matching events.
type QueryPerson struct {
	DistinctID          string
	Count               uint64
	FirstSeen, LastSeen time.Time
}

// Package events is the event store: every accepted event once per project and
// uuid, written by the ingestion worker in its own transaction and asked for
// lists, counts and people by the rest of the house.
//
// An event keeps its properties as the text that was sent. What questions ask
// for again and again ($current_url, $host, $pathname, the flag of a
// $feature_flag_called) is also written to columns of its own, because reading
// it out of JSON costs ten times as much, and one index covers the most common
// question: how many events of this name, in this time, at this address, and
// by whom?
//
// An event is stored with the person it was attributed to at the time. Whose
// event it is now is decided by its distinct id, through the table
// person_distinct_ids that core/persons keeps, so a merge of persons changes
// no event.
package events

import (
	"errors"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Config is what an operator can say about the event store.
type Config struct {
	// QueryTimeout bounds one question. A question about a long history reads
	// a lot; one that nobody waits for any more should not go on.
	QueryTimeout time.Duration `koanf:"query_timeout"`
}

// DefaultConfig gives a question half a minute.
func DefaultConfig() Config { return Config{QueryTimeout: 30 * time.Second} }

// Validate reports the first option that makes no sense.
func (c Config) Validate() error {
	if c.QueryTimeout <= 0 {
		return errors.New("events.query_timeout must be positive")
	}
	return nil
}

// URLMax is how many bytes of $current_url its column holds. A column of that
// length may be a cut address: ask the properties.
const URLMax = 1000

// Stored is an event with its place in the store.
type Stored struct {
	Row   int64 // grows as events are stored
	Event sdk.Event
}

// Filter says which events. Zero fields do not filter.
type Filter struct {
	Event      string
	DistinctID string
	After      time.Time // later than this
	Before     time.Time // earlier than this
	// Cursor continues a list: the Next of the page before.
	Cursor Cursor
}

// Cursor is a place in a list of events, newest first. The zero Cursor is the
// beginning.
type Cursor struct {
	Timestamp int64 // unix microseconds
	Row       int64
}

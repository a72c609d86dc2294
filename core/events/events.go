// Package events is the event store: it holds every accepted event once per
// project and uuid. The ingestion worker writes it in its own transaction; other
// packages read lists, counts and persons from it.
//
// An event keeps its properties as the text that was sent. SQLite stores it compressed
// once a project has a dictionary (package dictionaries); every read returns the text.
// The properties that
// most queries filter on ($current_url, the flag of a $feature_flag_called) are
// also written to columns, because reading them out of JSON costs ten times as
// much. One index covers the most common query: the events of a name, in a time,
// at a URL, by person. The columns host and pathname hold $host and $pathname of
// events of earlier versions; no query reads them.
//
// An event is stored with the person it was attributed to at the time. Its
// current person follows from its distinct id, through the table
// person_distinct_ids that core/persons maintains, so that a merge of persons
// changes no event.
package events

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/events/dictionaries"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/sdk"
)

// Config are the settings of the event store.
type Config struct {
	// URL is a ClickHouse that keeps the events: clickhouse://user:password@host:8123/database,
	// or clickhouses:// for TLS. Empty: the database keeps them.
	URL string `koanf:"url"`
	// OutboxBytes is how many bytes of events may wait for ClickHouse, compressed; then
	// processing waits. 0: no bound.
	OutboxBytes int64 `koanf:"outbox_bytes"`
	// QueryTimeout bounds one query. A query about a long history reads a lot and
	// should end when its client has given up.
	QueryTimeout time.Duration `koanf:"query_timeout"`
	// Retention is the age at which events are deleted in projects without a rule of
	// their own; 0 keeps them for ever.
	Retention time.Duration `koanf:"retention"`
	// Compress makes SQLite store the properties of new events compressed. Stored events
	// are readable in both forms with either setting. PostgreSQL ignores it.
	Compress bool `koanf:"compress"`
	// LiveViewers is the maximum number of open streams of live events.
	LiveViewers int `koanf:"live_viewers"`
}

// DefaultConfig bounds a query to half a minute and compresses.
func DefaultConfig() Config {
	return Config{QueryTimeout: 30 * time.Second, Compress: true, OutboxBytes: 4 << 30, LiveViewers: 50}
}

// Validate reports the first invalid setting.
func (c Config) Validate() error {
	if c.OutboxBytes < 0 {
		return errors.New("events.outbox_bytes must not be negative")
	}
	if c.LiveViewers < 0 {
		return errors.New("events.live_viewers must not be negative")
	}
	if c.QueryTimeout <= 0 {
		return errors.New("events.query_timeout must be positive")
	}
	if c.Retention < 0 || c.Retention > 0 && c.Retention < MinRetention {
		return errors.New("events.retention must be 0 (for ever) or at least 1h")
	}
	return nil
}

// MinRetention is the shortest age at which events are deleted.
const MinRetention = time.Hour

// MinCompressed is how many events a project has before new ones are compressed.
const MinCompressed = dictionaries.MinEvents

// URLMax is how many bytes of $current_url its column holds. A column of that
// length may be truncated; the properties have the whole URL.
const URLMax = 1000

// Stored is an event with its row id.
type Stored struct {
	Row   int64 // grows with each stored event
	Event sdk.Event
}

// Filter selects events. Zero fields do not filter.
type Filter struct {
	Event      string
	DistinctID string
	PersonID   string    // uuid or number of the current person
	After      time.Time // later than this
	Before     time.Time // earlier than this
	// Properties are the filters of properties that must all match. Their kind
	// is EventProperty or PersonProperty.
	Properties []propertyfilter.Item
	// Cursor continues a list: the cursor of the previous page.
	Cursor Cursor

	// Contains is part of the text of the properties, which a backend may ignore.
	Contains string
	// WithPersons reads the persons of the events as well.
	WithPersons bool
}

// Cursor is a position in a list of events, newest first. The zero Cursor is the
// start of the list.
type Cursor struct {
	Timestamp int64 // unix microseconds
	Row       int64
}

// ParseCursor reads the text of a cursor; "" is the zero Cursor. It fails with Invalid
// for other texts.
func ParseCursor(raw string) (Cursor, error) {
	if raw == "" {
		return Cursor{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(raw)
	if err != nil || len(b) != 16 {
		return Cursor{}, fault.Field("cursor", "invalid_input", "Not a cursor. Follow the next link of the page before.")
	}
	return Cursor{Timestamp: int64(binary.BigEndian.Uint64(b)), Row: int64(binary.BigEndian.Uint64(b[8:]))}, nil
}

// String returns the text form of a cursor in a link.
func (c Cursor) String() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.Timestamp))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(b, uint64(c.Row)))
}

// Package tail streams stored events to live viewers.
//
// A viewer is an open stream of server-sent events (core/web/stream) with a filter. While a
// project has viewers, one goroutine of the node, its topic, reads the rows of the event
// store behind its position and offers them to each viewer. So viewers see the events of
// every node, with each event store, and ingestion does no work for them. Without viewers
// nothing is read.
//
// A slow viewer does not block others. The topic puts an event into the queue of a viewer, which is
// bounded in events and bytes, or counts it; it never waits. The goroutine of the viewer
// writes the queue to the connection, and ends the stream when a write takes longer than
// writeTimeout. Skipped events are counted by reason, and the counts are sent in the
// stream:
//
//	rate    matching events above MaxRate per second, of which an even sample is sent
//	slow    matching events for which the queue had no place
//	unread  events of the project, matching or not, that the topic did not read because it
//	        was more than maxBehind rows behind
//	costly  events whose properties the filter was not applied to: it took more work than
//	        maxFilterWork, or a text was too long for a regular expression
//
// The id of a message is the row up to which the viewer has seen everything. A client that
// reconnects with it gets what it has missed, or the message reset if that is too much
// (resume.go).
//
// PostgreSQL numbers rows before their transactions commit. With several writers a row may
// become visible after a later one. The topic therefore looks at the rows of the last
// seconds a second time (window.go), and sends late rows when it finds them. The other
// stores number rows in the order in which they become visible.
//
// The credential of a viewer is checked again every checkInterval; the stream ends with the
// message end when it is not valid any more. A stop of the server ends all streams.
package tail

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/events"
)

// MaxRate is the number of events that a viewer gets in a second.
const MaxRate = 500

const (
	pageSize    = 1000     // rows of one read
	firstPage   = 8        // rows of the first read
	pageBytes   = 8 << 20  // of one read, about
	maxBehind   = 20_000   // rows of all projects that a topic may be behind
	maxResume   = 10_000   // rows of all projects that are read for a client that reconnects
	queueEvents = 1000     // of a viewer
	queueBytes  = 1 << 20  // of a viewer; one larger event is queued alone
	chunkBytes  = 64 << 10 // of one write

	// maxFilterWork is the work on texts that the filter of a viewer may cause in one poll, in
	// units of match.Budget: at worst about 0.2 s, while other viewers of the project wait.
	maxFilterWork = 20_000_000

	retryDelay = 2 * time.Second // of a client before it reconnects
)

// Times are the intervals of a Hub. Tests shorten them.
type Times struct {
	Poll      time.Duration // between reads
	Settle    time.Duration // between looks at late rows
	Heartbeat time.Duration // between comments
	Check     time.Duration // between checks of a credential
	Write     time.Duration // of one write
}

// DefaultTimes shows an event about 0.2 s after it is stored.
func DefaultTimes() Times {
	return Times{Poll: 250 * time.Millisecond, Settle: time.Second, Heartbeat: 15 * time.Second, Check: 5 * time.Second, Write: 15 * time.Second}
}

// Source is the event store.
type Source interface {
	// Last returns the last row that is visible.
	Last(ctx context.Context) (int64, error)
	// RecordsAfter returns the events of a project behind a row, in the order of rows.
	RecordsAfter(ctx context.Context, projectID, after int64, limit int) ([]events.Record, error)
	// Record returns the event with a uuid.
	Record(ctx context.Context, projectID int64, id string) (events.Record, error)
	// AddPersons sets the current persons of records, with details their properties.
	AddPersons(ctx context.Context, records []events.Record, details bool) error
	// CountBetween counts the events of a project with rows in (after, through].
	CountBetween(ctx context.Context, projectID, after, through int64) (int64, error)
	// RowsBetween returns the newest rows of a project in (after, through], at most
	// limit. A store that numbers rows in the order in which they become visible
	// returns none.
	RowsBetween(ctx context.Context, projectID, after, through int64, limit int) ([]Row, error)
}

// Row is the number of a stored event with its uuid.
type Row struct {
	ID   int64     `bun:"id"`
	UUID uuid.UUID `bun:"uuid"`
}

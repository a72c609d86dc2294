// Package journal stores accepted requests until all readers have read them.
//
// A request is answered only after Append returned, and Append returns only
// after the record is fsynced: a crash loses no acknowledged request. Readers
// (the ingestion worker, one per sink) read the records in order, each with a
// durable cursor of its own. A slow reader delays no other, and each continues
// after a restart where it stopped. Records that all readers have done are kept
// for a while, bounded by size and age, and then trimmed.
//
// Journal is the contract; Open returns the implementation for a single node,
// one SQLite file written by one goroutine that commits all waiting requests
// in one transaction. Package journaltest holds the conformance suite for all
// implementations.
//
// The program imports the driver of SQLite (see core/journal/format).
//
// The package uses prepared raw SQL on its own connections instead of bun: every
// request passes through these few statements (docs/decisions/0003 has the
// measurements).
package journal

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/journal/incident"
)

// Record is one appended record. Seq starts at 1, strictly increases in the
// order of the records and is never reused, not even after every record was
// trimmed and the process restarted. Gaps are allowed. At is the wall clock at
// the time of the append. It does not decrease, unless the clock was ahead by more
// than a minute and is right again.
type Record struct {
	Seq  uint64
	At   time.Time
	Data []byte
}

// Position is the progress of a reader: all records through Seq are done, and
// the first Index events of the next record. Count is the number of events that
// the reader received so far; the journal only stores it.
type Position struct {
	Seq   uint64
	Index uint32
	Count uint64
}

// Before reports whether p is earlier than q.
func (p Position) Before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// Start is the position of a new reader. The zero value is Begin, so that a
// forgotten Start reads too much rather than too little.
type Start uint8

// The two starts.
const (
	Begin Start = iota // the oldest record that is kept
	End                // after the newest record
)

// Stats describes a journal at one moment.
type Stats struct {
	ID        string              // created with the journal's file; a journal with another ID has other numbers
	First     uint64              // the oldest record kept; Last+1 when none is
	Last      uint64              // the newest record ever appended, 0 when there was none
	Records   int64               // records kept
	Bytes     int64               // their data
	OldestAt  time.Time           // when First was appended; zero when no record is kept
	FileBytes int64               // what the files take on disk
	Broken    error               // the reason why appends are refused now, else nil
	Previous  *Previous           // the journal that was here before, if its files were lost; else nil
	Incidents []incident.Incident // which an operator has not acknowledged, oldest first
	Damaged   []DamagedRange      // records found damaged that retention has not removed yet, by First
	Readers   []ReaderStats       // by name
}

// Previous is a journal whose files were lost: this one was created in its place.
type Previous struct {
	ID   string `json:"id"`
	Last uint64 `json:"last"` // its newest durable record
}

// ReaderStats describes one registered reader. Lag, Bytes and OldestAt are
// about the records that are kept and that it has not done yet.
type ReaderStats struct {
	Name     string
	Position Position
	Lag      int64     // records
	Bytes    int64     // their data
	OldestAt time.Time // when the oldest of them was appended; zero when there is none
	Dropped  int64     // records that were trimmed before this reader had done them (Config.DropUnread)
}

// Journal is a durable, ordered list of records with durable cursors. Every
// method may be called from many goroutines at once.
//
// Failures have kinds: Unavailable with a retry delay when the journal cannot
// store or return records now (saturated, full, broken, closing), TooLarge for
// a record over the limit, NotFound for a reader that is not registered,
// Conflict for a cursor that would move backwards. When ctx ends first, its
// error is returned unchanged.
type Journal interface {
	// Append stores data as one record and returns its number after it is on
	// disk. After an error no reader of this process sees the record; a crash
	// at that moment may still store it once. data is not retained. When ctx
	// ends, a queued record is withdrawn; once it is being written, Append
	// waits for the outcome and returns it.
	Append(ctx context.Context, data []byte) (seq uint64, err error)

	// Read returns records with Seq > after in ascending order, at most
	// maxRecords of them and about maxBytes of data, but at least one if one
	// exists, however large. It never waits: without records the result is
	// empty. The records belong to the caller. An error with a *DamagedError in
	// its chain names records that the disk has lost.
	Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]Record, error)

	// Wait returns nil when there may be a record with Seq > after, or an
	// error when ctx ends or the journal closes.
	Wait(ctx context.Context, after uint64) error

	// Register creates a durable cursor at from, or returns the committed
	// position of the reader of this name. From then on no record after its
	// position is trimmed (unless Config.DropUnread).
	Register(ctx context.Context, reader string, from Start) (Position, error)

	// Commit moves the reader's cursor to p, durably. It never moves
	// backwards: an earlier position, or a smaller Count, is a Conflict; the
	// same position is fine. A position beyond the newest record is Invalid.
	Commit(ctx context.Context, reader string, p Position) error

	// Unregister removes the reader and its cursor. Records that only it needed
	// can be trimmed. An unregistered reader is not an error.
	Unregister(ctx context.Context, reader string) error

	// Trim applies retention now and returns how many records it removed. The
	// journal also does so in the background (Config.TrimInterval).
	Trim(ctx context.Context) (removed int64, err error)

	// Stats describes the journal. It also works while appends are refused.
	Stats(ctx context.Context) (Stats, error)

	// Close refuses new appends, waits for queued ones, copies the write-ahead
	// log into the main file and closes the files. It may be called twice. When
	// ctx ends first, closing continues in the background.
	Close(ctx context.Context) error
}

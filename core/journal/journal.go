// Package journal keeps what was accepted until everybody has read it.
//
// A request is answered only after Append returned, and Append returns only
// after the record is fsynced: what a client was told is safe is safe. Readers
// (the ingestion worker, one per sink) walk the records in order, each with a
// durable cursor of its own, so that none of them waits for another and a
// restart continues where each one stopped. Records that no reader needs any
// more are kept for a while, bounded by size and age, and then trimmed.
//
// Journal is the promise; Open gives the implementation for a single node,
// one SQLite file written by one goroutine that commits everything that waits
// in one transaction. Package journaltest holds the conformance suite that
// every implementation must pass.
package journal

import (
	"context"
	"time"
)

// Record is one appended piece of data. Seq starts at 1, is strictly
// increasing in the order of the records and is never given twice, not even
// after every record was trimmed and the process restarted. Gaps are allowed.
// At is the wall clock at the time of the append, made non-decreasing.
type Record struct {
	Seq  uint64
	At   time.Time
	Data []byte
}

// Position is how far a reader has come: everything through record Seq is
// done and, of the record after it, the first Index events. Count is the
// number of events this reader was handed so far; the journal only keeps it.
type Position struct {
	Seq   uint64
	Index uint32
	Count uint64
}

// Before reports whether p is an earlier place than q.
func (p Position) Before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// Start says where a reader that is new begins. The zero value is Begin, so
// that a forgotten Start reads too much rather than too little.
type Start uint8

// The two starts.
const (
	Begin Start = iota // the oldest record that is kept
	End                // after the newest record
)

// Stats describes a journal at one moment.
type Stats struct {
	ID        string        // made with the journal's file and kept with it: another ID is another journal, whose numbers start anew
	First     uint64        // the oldest record kept; Last+1 when none is
	Last      uint64        // the newest record ever appended, 0 when there was none
	Records   int64         // records kept
	Bytes     int64         // their data
	OldestAt  time.Time     // when First was appended; zero when no record is kept
	FileBytes int64         // what the files take on disk
	Broken    error         // why appends are refused right now, nil when they are taken
	Readers   []ReaderStats // by name
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
// Failures have kinds: Unavailable with a time to come back after when the
// journal cannot take or give anything right now (saturated, full, broken,
// closing), TooLarge for a record over the limit, NotFound for a reader that
// is not registered, Conflict for a cursor that would move backwards. When ctx
// ends first its error is returned as it is.
type Journal interface {
	// Append stores data as one record and returns its number after it is on
	// disk. An error means that the record was refused, and that it will not
	// be read while this process lives; a crash in that very moment may still
	// show it once. data is not kept after the return. A ctx that ends takes
	// the record back while it waits in line; once it is being written Append
	// waits for the outcome and reports it.
	Append(ctx context.Context, data []byte) (seq uint64, err error)

	// Read returns records with Seq > after in ascending order, at most
	// maxRecords of them and about maxBytes of data, but always one when there
	// is one, however large. It never waits: no record yet is an empty answer.
	// The records belong to the caller. An error with a *DamagedError in its
	// chain names records that the disk has lost.
	Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]Record, error)

	// Wait returns nil when there may be a record with Seq > after, or an
	// error when ctx ends or the journal closes.
	Wait(ctx context.Context, after uint64) error

	// Register makes a durable cursor at from, or returns the position that
	// the reader of this name has committed. From then on no record after its
	// position is trimmed (unless Config.DropUnread).
	Register(ctx context.Context, reader string, from Start) (Position, error)

	// Commit moves the reader's cursor to p, durably. It never moves
	// backwards: an earlier position, or a smaller Count, is a Conflict; the
	// same position is fine. A position beyond the newest record is Invalid.
	Commit(ctx context.Context, reader string, p Position) error

	// Unregister forgets the reader and lets go of what only it needed.
	// A reader that is not registered is no error.
	Unregister(ctx context.Context, reader string) error

	// Trim applies retention now and returns how many records it removed. The
	// journal also does it by itself, steadily.
	Trim(ctx context.Context) (removed int64, err error)

	// Stats describes the journal. It answers also while appends are refused.
	Stats(ctx context.Context) (Stats, error)

	// Close refuses new appends, waits for those in line, folds everything
	// into the main file and lets go of it. Closing twice is fine. When ctx
	// ends first the rest happens in the background.
	Close(ctx context.Context) error
}

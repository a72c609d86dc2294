// Package eventlog is the log of accepted requests, in partitions.
//
// A log has one or more partitions. Each is an ordered list of records with
// numbers of its own and cursors of its own, as a journal is. All events of one
// distinct id are in one partition, so their order is kept. One node at a time
// owns a partition and reads it; any node appends to any partition.
//
// The journal of a single node is a log with one partition (Single). Package
// kafka has the log of many nodes. Package eventlogtest is the suite that each
// implementation passes. docs/decisions/0075 has the reasons.
package eventlog

import (
	"context"

	"github.com/cespare/xxhash/v2"

	"github.com/guidonhq/guidon/core/journal"
)

// Log is a log in partitions. Its methods may be called from many goroutines at
// once. Failures have the kinds of journal.Journal.
type Log interface {
	// Partitions returns the number of partitions, at least 1. It does not change
	// while the log is open.
	Partitions() int

	// Append stores each part as one record of its partition, and returns after
	// all of them are durable. After an error any of them may be stored: the
	// request is repeated as a whole, and readers remove the duplicates by the
	// uuids of their events. The data of the parts is not retained.
	Append(ctx context.Context, parts []Part) error

	// Partition returns a partition for its owner. token is that of the owner's
	// lease: a higher one takes the cursors of the partition over, and later calls
	// with a lower one fail with a fault of the kind Conflict. Token 0 is for Read,
	// Wait and Stats without a lease, also while a node owns it. A log of one node
	// ignores the token.
	Partition(number int, token int64) Partition

	// Register gives a reader a cursor in each partition in which it has none, without
	// a lease: whichever node owns a partition later goes on from there. While no reader
	// has registered under a lease in any partition, from has no effect and the reader
	// begins at the oldest record: what was appended before the first owner reaches it.
	Register(ctx context.Context, reader string, from journal.Start) error

	// Close refuses new appends and waits for the ones that began. When ctx ends
	// first, closing continues in the background.
	Close(ctx context.Context) error
}

// Part is a record for one partition.
type Part struct {
	Partition int
	Data      []byte
}

// Partition is one list of records and its cursors. Its methods are those of
// journal.Journal with the same names. The id in its Stats names the log and the
// partition: another id has other numbers.
type Partition interface {
	Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error)
	Wait(ctx context.Context, after uint64) error
	Register(ctx context.Context, reader string, from journal.Start) (journal.Position, error)
	Commit(ctx context.Context, reader string, p journal.Position) error
	Unregister(ctx context.Context, reader string) error
	Stats(ctx context.Context) (journal.Stats, error)
}

// PartitionOf returns the partition of a distinct id of a project in a log with n
// partitions: the 64-bit xxHash of the id, seeded with the project, modulo n.
// Records keep their partitions, so the function never changes.
func PartitionOf(projectID int64, distinctID string, n int) int {
	if n <= 1 {
		return 0
	}
	var d xxhash.Digest
	d.ResetWithSeed(uint64(projectID))
	_, _ = d.WriteString(distinctID)
	return int(d.Sum64() % uint64(n))
}

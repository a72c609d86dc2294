// Package erasure deletes persons for good: it carries out each deletion to its
// end, and remembers it.
//
// A deletion is a row of the table erasures before anything is deleted, so a
// crash delays it and never halves it. Then its record is appended to the
// journal, and the hashes of its distinct ids are written. From there on, an event
// of an erased distinct id in a record before that one is dropped, or stored
// without a person if the events were to stay. Only then the data is deleted, everywhere: a transaction
// of the pipeline that was running has ended, and a later one knows the erasure.
//
// The record in the journal is for a database that is restored from a backup
// beside the newer journal. Such a database does not know the erasure. Recover
// reads the records that the database has not processed, before the pipeline
// does, and carries out the erasures it finds there. The person does not
// reappear for a moment.
//
// Events that arrive after the erasure belong to a new person. A record that is
// trimmed from the journal protects no older backup.
//
// With a log in partitions (Service.OnLog), the record is in every partition, and an
// id has a mark for each. The nodes keep no marks in memory: each transaction of the
// pipeline takes a shared lock of the database and reads the marks that concern its
// records (Partition.Load); the transaction that writes marks takes the lock alone, so
// it waits for those that do not know them, on any node. A node that takes a partition over
// while an erasure is carried out does not wait for it: the marks are there, or it writes
// those of its partition. It waits only to recover an erasure that the database does not know.
//
// # Takeover of a partition
//
// A node that takes a partition over reads the records behind the cursor of the live lane
// for erasures that the database does not know, before it processes the first event. With a
// large backlog that takes long, so the table erasure_scans has a position for each
// partition, and the next owner reads the records behind the position only (startScan).
//
// The invariant: of each erasure with a record between the cursor and the position, the
// database has the marks for the partition, and the erasure is done or was requested from
// this database, which carries it out.
//
// The transaction that moves the position proves this from the database alone
// (savePosition). What was known before the scan began is known still, because the position
// is the one at which it began, or because the cursor has passed the beginning: each erasure
// is in the database before its record is in the log. What was read since is known, because
// the marks of each erasure are there. So a crash between reading, recording and moving
// leaves the former position, and no lease is needed: a node that lost its lease, or that
// goes on after the database was replaced by a backup, finds another position or an earlier
// cursor, and writes nothing.
//
// The position has a digest of its record. If the log has lost its newest records, it ends
// before the position or has given the number to another record; then the scan begins at the
// cursor. Another log has partitions with other ids. Records that cannot be read stop the
// position until the cursor has passed them: they are read again later, or by a version that
// can. A version without the table reads from the cursor and leaves the position as it is.
//
// The owner of a partition reads ahead of its cursor each 5 seconds (ScanAhead), so that the
// position follows a backlog that grows. It writes nothing while the worker keeps up, and
// recovers nothing: the position waits before an erasure whose marks are missing, because it
// is being carried out.
//
// # What it does not reach
//
// Deliveries to sinks leave out the events that are not delivered yet. The package
// does not reach copies outside of the server: what sinks have received, backups, and
// the journal itself, whose records leave by its retention.
package erasure

import (
	"time"

	"github.com/guidonhq/guidon/core/persons"
)

// Verdict is what the pipeline does with an event.
type Verdict uint8

// The verdicts.
const (
	Keep     Verdict = iota // no erasure concerns the event
	Detach                  // it is stored without a person
	DropData                // it is dropped
)

// Erasure is a deletion of a person.
type Erasure struct {
	persons.Removal
	ID          string
	RequestedAt time.Time
	Journal     string // id of the journal
	Seq         uint64 // of the record in the journal, 0 until it is appended
}

// mark is the memory of one distinct id: the records before these numbers are
// concerned.
type mark struct {
	personSeq, eventsSeq uint64
	personAt, eventsAt   time.Time
}

func (m mark) verdict(seq uint64) Verdict {
	switch {
	case seq < m.eventsSeq:
		return DropData
	case seq < m.personSeq:
		return Detach
	}
	return Keep
}

func (m mark) verdictAt(received time.Time) Verdict {
	switch {
	case received.Before(m.eventsAt):
		return DropData
	case received.Before(m.personAt):
		return Detach
	}
	return Keep
}

// add extends m by an erasure.
func (m mark) add(e *Erasure) mark {
	if e.Seq > m.personSeq {
		m.personSeq, m.personAt = e.Seq, e.RequestedAt
	}
	if e.Events && e.Seq > m.eventsSeq {
		m.eventsSeq, m.eventsAt = e.Seq, e.RequestedAt
	}
	return m
}

package sdk

import (
	"encoding/json"
	"fmt"
	"time"
)

// Batch is a run of consecutive events for one sink instance. The record at
// index i has the sequence number FirstSeq+i. A batch that is sent again, after
// a lost reply or a restart, has the same ID and the same records; only Attempt
// differs. A Batch is read-only: the host may hand the same one out again.
type Batch struct {
	// ID names this content for ever: the same ID is never used for other
	// records, so a store may use it as a deduplication token.
	ID string
	// Attempt counts the deliveries of this ID, starting at 1.
	Attempt uint32
	// FirstSeq and LastSeq are the sequence numbers of the first and the last
	// record. They start at 1 and are counted for each instance on its own.
	FirstSeq, LastSeq uint64
	// Records are the events, in the order in which they were accepted.
	Records []Record
}

// Record is one event of a batch in its canonical JSON form, with the fields a
// sink needs most often already at hand.
type Record struct {
	// UUID is the event's identity, stable over every redelivery.
	UUID [16]byte
	// JSON is the canonical form of Event: one object, no line breaks.
	JSON []byte
	// ReceivedAt is when the server accepted the event, UTC, microseconds.
	ReceivedAt time.Time
	// ProjectID is the project the event belongs to.
	ProjectID int64
}

// Size returns the bytes of JSON in the batch.
func (b *Batch) Size() int {
	n := 0
	for i := range b.Records {
		n += len(b.Records[i].JSON)
	}
	return n
}

// NDJSON returns the batch as lines of JSON, each ended by a line feed.
func (b *Batch) NDJSON() []byte {
	out := make([]byte, 0, b.Size()+len(b.Records))
	for i := range b.Records {
		out = append(out, b.Records[i].JSON...)
		out = append(out, '\n')
	}
	return out
}

// Events decodes every record. It fails on the first record that is not an
// event, naming its index; the host never sends one.
func (b *Batch) Events() ([]Event, error) {
	events := make([]Event, len(b.Records))
	for i := range b.Records {
		if err := json.Unmarshal(b.Records[i].JSON, &events[i]); err != nil {
			return nil, fmt.Errorf("decode record %d: %w", i, err)
		}
	}
	return events, nil
}

// Committed is the answer of a sink that has made every record safe, at the
// durability it declared.
func (b *Batch) Committed() WriteResult {
	return WriteResult{Outcome: Committed, CommittedThrough: b.LastSeq}
}

// Partial is the answer of a sink that has made every record safe except the
// ones listed. With an empty list it is Committed.
func (b *Batch) Partial(failures ...Failure) WriteResult {
	if len(failures) == 0 {
		return b.Committed()
	}
	return WriteResult{Outcome: Partial, CommittedThrough: b.LastSeq, Failures: failures}
}

// Staged is the answer of a sink that has accepted every record but not made
// it safe yet. through is the highest sequence number that is safe by now: 0
// when none is.
func (b *Batch) Staged(through uint64) WriteResult {
	return WriteResult{Outcome: Staged, CommittedThrough: through}
}

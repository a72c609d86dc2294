// Package deadletter keeps the events that the pipeline or a sink could not
// take.
//
// A dead letter holds the event, its source and the error. Users list dead
// letters, edit their event, request a replay or delete them; a request for a
// replay is a row in the database, so the API and the command line both make
// it, and it survives a crash. Package replay carries the requests out.
//
// An event has at most one dead letter per source: a further failure is counted
// in the first one, whose payload, which may have been edited, stays.
package deadletter

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
)

// The sources of dead letters: the pipeline's worker, and SourceSink followed by
// the name of a sink instance.
const (
	SourceWorker = "worker"
	SourceSink   = "sink/"
)

// Entry is a dead letter.
type Entry struct {
	ID         int64           `json:"id"`
	ProjectID  int64           `json:"project_id"`
	Source     string          `json:"source"` // SourceWorker, or SourceSink and the name of the instance
	EventUUID  string          `json:"event_uuid"`
	Event      string          `json:"event"`
	DistinctID string          `json:"distinct_id"`
	ReceivedAt time.Time       `json:"received_at"`
	CreatedAt  time.Time       `json:"created_at"` // first failure
	FailedAt   time.Time       `json:"failed_at"`  // latest failure
	Attempts   int64           `json:"attempts"`   // number of failures
	Class      string          `json:"class"`
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Seq        uint64          `json:"seq,omitempty"` // of a sink: the sequence number of the event
	Payload    json.RawMessage `json:"payload"`       // the event in its canonical form

	ReplayRequestedAt *time.Time `json:"replay_requested_at"` // latest request
	ReplayWaiting     bool       `json:"replay_waiting"`      // requested and not settled
	ReplayError       string     `json:"replay_error"`        // of the latest replay
}

// maxMessage bounds the bytes of an error that are kept.
const maxMessage = 2000

// New returns the dead letter of an event that failed with e.
func New(source string, ev *sdk.Event, e *sdk.Error, now time.Time) *Entry {
	return &Entry{
		ProjectID: ev.ProjectID, Source: source, EventUUID: ev.UUID, Event: ev.Name, DistinctID: ev.DistinctID,
		ReceivedAt: ev.ReceivedAt, CreatedAt: now, FailedAt: now, Attempts: 1,
		Class: e.Class.String(), Code: e.Code, Message: Clean(e.Message), Payload: ev.AppendJSON(nil),
	}
}

// NewUnreadable returns the dead letter of a journal record that cannot be
// parsed. It keeps the bytes, under the number of the record in its journal.
func NewUnreadable(journalID string, rec journal.Record, err error) *Entry {
	payload, _ := json.Marshal(map[string]any{"journal": journalID, "seq": rec.Seq, "data": rec.Data}) // cannot fail
	return &Entry{
		Source: SourceWorker, EventUUID: fmt.Sprintf("%s/%d", journalID, rec.Seq), ReceivedAt: rec.At,
		CreatedAt: time.Now(), FailedAt: time.Now(), Attempts: 1, Class: sdk.ClassPermanent.String(),
		Code: event.KindUnreadableRecord, Message: Clean(err.Error()), Payload: payload,
	}
}

// CodeDamaged is the code of the dead letter of a damaged range.
const CodeDamaged = "journal_range_damaged"

// NewDamaged returns the dead letter of a range of records that the journal has
// lost. It belongs to no project and keeps what the file still has of the range:
// records with wrong bytes in them, with the project that they name, or raw data.
func NewDamaged(source, journalID string, d *journal.DamagedError) *Entry {
	type saved struct {
		Seq       uint64 `json:"seq"`
		ProjectID int64  `json:"project_id,omitempty"`
		Data      []byte `json:"data"`
	}
	records := make([]saved, len(d.Saved))
	for i, r := range d.Saved {
		records[i] = saved{Seq: r.Seq, Data: r.Data}
		if rec, err := event.ParseRecord(r.Data); err == nil {
			records[i].ProjectID = rec.ProjectID
		}
	}
	payload, _ := json.Marshal(map[string]any{ // cannot fail
		"journal": journalID, "first": d.First, "last": d.Last, "bytes": d.Bytes, "records": records, "raw": d.Raw,
	})
	now := time.Now()
	received := d.At
	if y := received.Year(); y < 2000 || received.After(now) { // unknown, or damaged itself
		received = now
	}
	return &Entry{
		Source: source, EventUUID: fmt.Sprintf("%s/%d-%d", journalID, d.First, d.Last), ReceivedAt: received,
		CreatedAt: now, FailedAt: now, Attempts: 1, Class: sdk.ClassPermanent.String(),
		Code: CodeDamaged, Message: Clean(d.Error()), Payload: payload,
	}
}

// Clean shortens an error message for a column and replaces what PostgreSQL
// refuses: NUL and invalid UTF-8.
func Clean(message string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text.Truncate(message, maxMessage), "\ufffd"), "\x00", "\ufffd")
}

package ingestion

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/sdk"
)

// sourceWorker and sourceSink say who could not take an event.
const (
	sourceWorker = "worker"
	sourceSink   = "sink/"
)

// DeadLetter is an event that the worker or a sink could not take, kept so that
// a person can see why, and send it again.
type DeadLetter struct {
	ID         int64           `json:"id"`
	ProjectID  int64           `json:"project_id"`
	Source     string          `json:"source"` // worker, or sink/ and the name of the instance
	EventUUID  string          `json:"event_uuid"`
	Event      string          `json:"event"`
	DistinctID string          `json:"distinct_id"`
	ReceivedAt time.Time       `json:"received_at"`
	CreatedAt  time.Time       `json:"created_at"` // when it was first set aside
	FailedAt   time.Time       `json:"failed_at"`  // when it last failed
	Attempts   int64           `json:"attempts"`   // how often it was set aside
	Class      string          `json:"class"`
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Seq        uint64          `json:"seq,omitempty"` // of a sink: the number the event had on its way there
	Payload    json.RawMessage `json:"payload"`       // the event in its canonical form

	ReplayRequestedAt *time.Time `json:"replay_requested_at"` // when somebody last asked for it to be sent again
	ReplayWaiting     bool       `json:"replay_waiting"`      // asked for, and not settled yet
	ReplayError       string     `json:"replay_error"`        // why the last try did not succeed
}

// maxMessage is how many bytes of an error are kept.
const maxMessage = 2000

// letter makes a dead letter of an event.
func letter(source string, ev *sdk.Event, e *sdk.Error, now time.Time) *DeadLetter {
	return &DeadLetter{
		ProjectID: ev.ProjectID, Source: source, EventUUID: ev.UUID, Event: ev.Name, DistinctID: ev.DistinctID,
		ReceivedAt: ev.ReceivedAt, CreatedAt: now, FailedAt: now, Attempts: 1,
		Class: e.Class.String(), Code: e.Code, Message: clipText(e.Message, maxMessage), Payload: ev.AppendJSON(nil),
	}
}

// clipText returns at most n bytes of s, whole characters, nothing a database
// refuses.
func clipText(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// brokenLetter makes a dead letter of a record that cannot be read: its bytes,
// so that nothing is lost, under the number it has in its journal.
func brokenLetter(journalID string, b *brokenRecord) *DeadLetter {
	payload, _ := json.Marshal(map[string]any{"journal": journalID, "seq": b.record.Seq, "data": b.record.Data}) // cannot fail
	return &DeadLetter{
		Source: sourceWorker, EventUUID: fmt.Sprintf("%s/%d", journalID, b.record.Seq), ReceivedAt: b.record.At,
		CreatedAt: time.Now(), FailedAt: time.Now(), Attempts: 1, Class: sdk.ClassPermanent.String(),
		Code: event.KindUnreadableRecord, Message: clipText(b.err.Error(), maxMessage), Payload: payload,
	}
}

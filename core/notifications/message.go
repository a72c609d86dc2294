package notifications

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

// State is the state of a notification.
type State string

// The states.
const (
	Waiting   State = "waiting"
	Delivered State = "delivered"
	Failed    State = "failed"  // given up
	Expired   State = "expired" // not delivered in time
)

// Message is the rendered message about one event.
type Message struct {
	Text     string         `json:"text"`
	Segments []segment      `json:"segments"`
	Template string         `json:"template"`
	Project  sdk.ProjectRef `json:"project"`
	Action   sdk.ActionRef  `json:"action"`
	Event    sdk.Event      `json:"event"`
	EventURL string         `json:"event_url,omitempty"`
	Person   sdk.PersonRef  `json:"person"`
	Test     bool           `json:"test,omitempty"`
}

type segment struct {
	Kind  sdk.SegmentKind `json:"kind"`
	Value string          `json:"value"`
	Href  string          `json:"href,omitempty"`
}

// Delivery is a queued or settled notification. It has one field per stored
// column.
type Delivery struct {
	ID          int64
	ProjectID   int64
	ActionID    int64
	Notifier    string
	Destination string // "" is the notifier's own
	Key         string
	EventUUID   string
	Text        string
	Message     json.RawMessage // nil in lists
	Suppressed  int64
	State       State
	Attempts    int64
	NextAt      time.Time
	LeasedUntil time.Time // end of this process's lease
	CreatedAt   time.Time
	ExpiresAt   time.Time
	SettledAt   *time.Time
	MessageID   string
	ErrorCode   string
	Error       string
	Origin      tracing.Origin // of the request that sent the event; zero without a trace
}

// keyOf is the key of the message about an event to a destination of an
// action, in a format.
func keyOf(actionID int64, notifier, destination, format string, ev *sdk.Event) string {
	h := sha256.New()
	for _, s := range []string{strconv.FormatInt(actionID, 10), notifier, destination, format, strconv.FormatInt(ev.ProjectID, 10), ev.UUID} {
		h.Write(strconv.AppendInt(nil, int64(len(s)), 10))
		h.Write([]byte(":" + s))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// formatKey is a short key of a format; "" is the action's own.
func formatKey(format string) string {
	if format == "" {
		return ""
	}
	h := sha256.Sum256([]byte(format))
	return hex.EncodeToString(h[:8])
}

// notification converts the delivery to the form that notifiers receive.
func (d *Delivery) notification() (*sdk.Notification, error) {
	var m Message
	if err := json.Unmarshal(d.Message, &m); err != nil {
		return nil, err
	}
	n := &sdk.Notification{
		ID: d.Key, Attempt: uint32(d.Attempts + 1), ExpiresAt: d.ExpiresAt, Destination: d.Destination, Project: m.Project, Action: m.Action,
		Event: m.Event, EventURL: m.EventURL, Person: m.Person, Text: m.Text, Template: m.Template, Suppressed: uint32(d.Suppressed), Test: m.Test,
	}
	for _, s := range m.Segments {
		n.Segments = append(n.Segments, sdk.Segment(s))
	}
	return n, nil
}

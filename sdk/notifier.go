package sdk

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Notifier tells people about events: it posts to a chat, sends a mail, calls a
// service. The SDK makes one value for each configured instance and opens it
// once; after a lost session it closes the value, makes a new one and opens
// that. Notify may be called from as many goroutines as
// NotifierProperties.MaxInFlight; Open and Close never run beside a Notify.
//
// A notifier may also implement Configured, Validator, Checker, Previewer and
// Metricser.
type Notifier interface {
	// Open connects and returns the properties of the notifier. A ConfigError
	// stops the instance until the operator changes its config; any other error
	// is tried again. OpenRequest.CommittedThrough is always 0.
	Open(ctx context.Context, req OpenRequest) (NotifierProperties, error)
	// Notify delivers one notification, or returns why not. nil as the error with
	// the outcome Delivered is the only success. An error that is Permanent, or
	// Unsupported, gives the notification up; any other is tried again until it
	// expires. A ConfigError stops the instance, unless the notification names a
	// Destination of its own: then it is that destination that is wrong, and the
	// notification is given up. With an error only NotifyResult.Rate is looked at.
	//
	// Before it calls Notify the SDK drops what has expired, and answers
	// Duplicate for an ID that this process has delivered within
	// NotifierProperties.DedupWindow.
	Notify(ctx context.Context, n *Notification) (NotifyResult, error)
	// Close releases what Open took. It is called once, also after an Open
	// that failed.
	Close(ctx context.Context) error
}

// Previewer is implemented by a notifier that can show what it would send.
// Preview sends nothing and touches no network.
type Previewer interface {
	Preview(ctx context.Context, n *Notification) (Preview, error)
}

// Preview is what would be sent.
type Preview struct {
	// Rendered is the message in the form in which the service gets it.
	Rendered []byte
	// MediaType is the type of Rendered: "application/json".
	MediaType string
	// Warnings are sentences for the author of the message: "the text is cut".
	Warnings []string
}

// NotifierProperties is how a notifier wants to be fed. Zero values are the
// weakest choice: one notification at a time, no promise.
type NotifierProperties struct {
	// MaxItems is how many notifications may come in one call; 0 leaves it to
	// the host.
	MaxItems int
	// MaxInFlight is how many Notify calls may run at once; 0 means 1.
	MaxInFlight int
	// PerSecond and Burst are the rate that the service allows; 0 is no limit.
	PerSecond float64
	Burst     int
	// PerDestination applies the rate to each destination separately.
	PerDestination bool
	// DedupWindow is how long the SDK remembers what was delivered, so that a
	// second delivery of the same ID does not post twice; 0 means an hour, less
	// than 0 means not at all.
	DedupWindow time.Duration
	// MaxTextBytes is the longest text the service takes; 0 is no limit.
	MaxTextBytes int
	// Formats are what the notifier renders: FormatPlain, FormatMarkdown,
	// FormatSegments. None means FormatSegments.
	Formats []string
}

// The formats a notifier can render.
const (
	FormatPlain    = "plain"
	FormatMarkdown = "markdown"
	FormatSegments = "segments"
)

// Notification is one message about one event. It is read-only: the host may
// hand the same one out again.
type Notification struct {
	// ID names this message for ever: a retry carries the same one, so a service
	// that takes an idempotency key can be given it.
	ID string
	// Attempt counts the deliveries of this ID, starting at 1.
	Attempt uint32
	// ExpiresAt is when it is too late to send; zero for never.
	ExpiresAt time.Time
	// Destination overrides where the instance's config sends to; "" is the
	// config's. It was written by a user with access to actions, not by the
	// operator: reach it through HTTPClient.
	Destination string
	// Project owns the event, Action is the action that it matched.
	Project ProjectRef
	Action  ActionRef
	// Event is what happened. Its properties are those the host lets out.
	Event Event
	// EventURL is where the event can be looked at, or "".
	EventURL string
	// Person is the person of the event.
	Person PersonRef
	// Text is the whole message as plain text, and Segments the same message in
	// parts. Neither is escaped for any markup: that is the notifier's to do, so
	// that nothing in an event can address a whole channel.
	Text     string
	Segments []Segment
	// Template is the format that Text was made from, for information.
	Template string
	// Suppressed is how many notifications like this one were left out before
	// it, because they came too fast.
	Suppressed uint32
	// Test is true for a message that tries the destination.
	Test bool
}

// ProjectRef is the project of a notification.
type ProjectRef struct {
	ID   int64  `json:"id"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// ActionRef is the action whose match is reported.
type ActionRef struct {
	ID   int64    `json:"id"`
	Name string   `json:"name,omitempty"`
	URL  string   `json:"url,omitempty"`
	Tags []string `json:"tags,omitempty"`
}

// PersonRef is the person of the event.
type PersonRef struct {
	// Display is what people call the person, the distinct id at the least.
	Display string `json:"display,omitempty"`
	URL     string `json:"url,omitempty"`
	// Properties are those the host lets out; may be nil.
	Properties json.RawMessage `json:"properties,omitempty"`
}

// Segment is a part of a message.
type Segment struct {
	Kind SegmentKind
	// Value is the text to show, unescaped.
	Value string
	// Href is where a link leads, an http, https or mailto address; "" for
	// other kinds, and for a link that leads nowhere.
	Href string
}

// SegmentKind is how a segment is shown. A kind that is not known, the zero
// value too, is plain text.
type SegmentKind uint8

// The kinds of segments.
const (
	SegmentUnspecified SegmentKind = iota
	SegmentText                    // unformatted
	SegmentBold                    // stressed
	SegmentLink                    // Value, leading to Href
	SegmentCode                    // in a fixed-width font
	SegmentUser                    // the name of a person, leading to Href when it has one
)

var segmentNames = [...]string{"unspecified", "text", "bold", "link", "code", "user"}

// String returns the kind in lower case.
func (k SegmentKind) String() string {
	if int(k) < len(segmentNames) {
		return segmentNames[k]
	}
	return "unknown"
}

// Render joins the segments, each through escape. Without segments it renders
// Text as one. It is all that most notifiers need.
func (n *Notification) Render(escape func(Segment) string) string {
	if len(n.Segments) == 0 {
		return escape(Segment{Kind: SegmentText, Value: n.Text})
	}
	var out strings.Builder
	for _, s := range n.Segments {
		out.WriteString(escape(s))
	}
	return out.String()
}

// Expired reports whether it is too late to send the notification.
func (n *Notification) Expired(now time.Time) bool {
	return !n.ExpiresAt.IsZero() && !now.Before(n.ExpiresAt)
}

// Delivered is the answer of a notifier that has delivered. messageID is how the
// service calls the message, or "".
func (n *Notification) Delivered(messageID string) NotifyResult {
	return NotifyResult{Outcome: Delivered, MessageID: messageID}
}

// NotifyOutcome is what became of a notification. The zero value is never
// success: the host takes it as an unknown outcome and tries again.
type NotifyOutcome uint8

// The outcomes.
const (
	NotifyUnspecified NotifyOutcome = iota
	Delivered                       // the service has it
	Duplicate                       // it had been delivered before
	Retry                           // it was not delivered, and may be later
	Dropped                         // it was not delivered, and will not be
)

var notifyNames = [...]string{"unspecified", "delivered", "duplicate", "retry", "dropped"}

// String returns the outcome in lower case.
func (o NotifyOutcome) String() string {
	if int(o) < len(notifyNames) {
		return notifyNames[o]
	}
	return "unknown"
}

// NotifyResult is the answer to a notification. Use Notification.Delivered or an
// error from Notify rather than filling it by hand.
type NotifyResult struct {
	Outcome NotifyOutcome
	// MessageID is how the service calls the message.
	MessageID string
	// Err is why, when Outcome is Retry or Dropped.
	Err *Error
	// Rate is the service's report of its limits, or nil. Give it also with
	// a success: the host then slows down before it is refused.
	Rate *Rate
}

// Rate is the remainder of a service's limit.
type Rate struct {
	// Remaining is how many messages may still be sent before ResetAfter has
	// passed.
	Remaining int
	// ResetAfter is when the limit is whole again.
	ResetAfter time.Duration
	// Scope names what the limit is for: a channel, a webhook. "" is the whole
	// instance.
	Scope string
}

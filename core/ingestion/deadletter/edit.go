package deadletter

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/sdk"
)

var errNotAnEvent = fault.New(fault.Conflict, "not_an_event", "This dead letter holds no event.")

// Decode returns the event of the dead letter, or Conflict when it holds none.
func (e *Entry) Decode() (sdk.Event, error) {
	var ev sdk.Event
	if err := json.Unmarshal(e.Payload, &ev); err != nil {
		return ev, errNotAnEvent.Because(err)
	}
	if ev.UUID == "" || ev.UUID != e.EventUUID || ev.ProjectID != e.ProjectID || ev.Name == "" || ev.DistinctID == "" {
		return ev, errNotAnEvent
	}
	return ev, nil
}

// amend changes the fields of ev that patch holds: event, distinct_id,
// timestamp, properties (as a whole) and elements_chain. uuid, project_id,
// received_at and person_id may be present, unchanged, so that a client can read
// a whole event, edit it and send it back. Any other field is an error, and so
// is a value that capture would not accept.
func amend(limits event.Limits, ev *sdk.Event, patch []byte) error {
	fields, err := membersOf(patch)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		raw := fields[name]
		switch name {
		case "event":
			err = amendText(&ev.Name, name, raw, 1, event.MaxChars)
		case "distinct_id":
			err = amendText(&ev.DistinctID, name, raw, 1, event.MaxChars)
		case "elements_chain":
			err = amendText(&ev.ElementsChain, name, raw, 0, limits.MaxEventBytes)
		case "timestamp":
			err = amendTime(&ev.Timestamp, name, raw)
		case "properties":
			err = amendProperties(limits, ev, raw)
		case "uuid", "project_id", "received_at", "person_id":
			err = unchanged(ev, name, raw)
		default:
			err = fault.Field(name, "unknown_field", "An event has no field of this name.")
		}
		if err != nil {
			return err
		}
	}
	if n := len(ev.AppendJSON(nil)); n > limits.MaxEventBytes {
		return fault.Newf(fault.Invalid, "event_too_large", "The event would be %d bytes; %d are allowed.", n, limits.MaxEventBytes)
	}
	return nil
}

// membersOf returns the members of a JSON object.
func membersOf(object []byte) (map[string]json.RawMessage, error) {
	var s jsontext.Scanner
	s.Reset(object)
	if s.Peek() != '{' || !json.Valid(object) {
		return nil, fault.New(fault.Malformed, "parse_error", "JSON parse error - the event has to be a JSON object.")
	}
	if s.Value(); !s.End() {
		return nil, fault.New(fault.Malformed, "parse_error", "JSON parse error - the event nests too deep.")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, fault.New(fault.Malformed, "parse_error", "JSON parse error - the event cannot be read.").Because(err)
	}
	return fields, nil
}

// amendText reads a string of minChars to maxChars characters.
func amendText(to *string, name string, raw json.RawMessage, minChars, maxChars int) error {
	var s jsontext.Scanner
	s.Reset(raw)
	if s.Peek() != '"' {
		return fault.Field(name, "invalid_input", "Not a valid string.")
	}
	if s.Value(); s.Bad || s.Dirty {
		return fault.Field(name, "invalid_input", "The text holds characters that cannot be stored.")
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fault.Field(name, "invalid_input", "Not a valid string.")
	}
	switch {
	case len(strings.TrimSpace(text)) < minChars:
		return fault.Field(name, "blank", "This field may not be blank.")
	case utf8.RuneCountInString(text) > maxChars:
		return fault.Fieldf(name, "max_length", "Ensure this field has no more than %d characters.", maxChars)
	}
	*to = text
	return nil
}

func amendTime(to *time.Time, name string, raw json.RawMessage) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if at, ok := event.ParseTime(text); ok && at.Year() >= 0 && at.Year() <= 9999 {
			*to = at.UTC()
			return nil
		}
	}
	return fault.Field(name, "invalid_input", "Give a time, such as 2024-05-01T10:00:00Z.")
}

// amendProperties reads an object within the limits, with each name once.
func amendProperties(limits event.Limits, ev *sdk.Event, raw json.RawMessage) error {
	const name = "properties"
	if !event.IsObject(raw) {
		return fault.Field(name, "not_a_dict", "Expected a dictionary of items.")
	}
	var s jsontext.Scanner
	s.Reset(raw)
	s.Peek()
	s.Open()
	seen := map[string]bool{}
	for key, ok := s.Member(true); ok; key, ok = s.Member(false) {
		text := string(key.Resolve(nil))
		if seen[text] {
			return fault.Fieldf(name, "invalid_input", "The property %q is there twice.", text)
		}
		seen[text] = true
		s.Value()
	}
	switch {
	case len(seen) > limits.MaxProperties:
		return fault.Fieldf(name, "too_many_properties", "There are %d properties; %d are allowed.", len(seen), limits.MaxProperties)
	case s.Deepest >= limits.MaxDepth: // the event around them is one level more
		return fault.Fieldf(name, "too_deep", "They nest deeper than %d levels.", limits.MaxDepth)
	}
	ev.Properties = jsontext.AppendClean(nil, raw)
	return nil
}

// unchanged returns an error if a field differs from the field of ev.
func unchanged(ev *sdk.Event, name string, raw json.RawMessage) error {
	same := false
	switch name {
	case "uuid":
		var id string
		same = json.Unmarshal(raw, &id) == nil && strings.EqualFold(id, ev.UUID)
	case "person_id":
		var id string
		same = json.Unmarshal(raw, &id) == nil && strings.EqualFold(id, ev.PersonID)
	case "project_id":
		var id int64
		same = json.Unmarshal(raw, &id) == nil && id == ev.ProjectID
	case "received_at":
		var at time.Time
		same = amendTime(&at, name, raw) == nil && at.Equal(ev.ReceivedAt)
	}
	if !same {
		return fault.Field(name, "immutable", "This field of an event cannot be changed.")
	}
	return nil
}

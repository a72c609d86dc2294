package sdk

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// Event is one captured event as every plugin sees it and as the host keeps it.
// Its JSON form is the canonical one: the bytes that a sink is handed and that
// the file sink writes as a line. Fields are only ever added.
type Event struct {
	// UUID identifies the event forever: retries of a request and
	// redeliveries of a batch carry the same one. Lower case, with dashes.
	UUID string `json:"uuid"`
	// ProjectID is the project whose key the event was sent with.
	ProjectID int64 `json:"project_id"`
	// Name is the event name, at most 200 characters, never empty.
	Name string `json:"event"`
	// DistinctID identifies the user, at most 200 characters, never empty.
	DistinctID string `json:"distinct_id"`
	// Timestamp is when it happened, in UTC with microseconds, corrected for
	// the skew of the client's clock.
	Timestamp time.Time `json:"timestamp"`
	// ReceivedAt is when the server accepted it, in UTC with microseconds.
	ReceivedAt time.Time `json:"received_at"`
	// Properties is a JSON object, never null. Numbers keep their digits.
	Properties json.RawMessage `json:"properties"`
	// ElementsChain is the clicked element and its ancestors, or empty.
	ElementsChain string `json:"elements_chain,omitempty"`
	// PersonID is the person the event was attributed to when the host knew
	// it at the time; empty otherwise.
	PersonID string `json:"person_id,omitempty"`
}

// AppendJSON appends the canonical JSON of e to dst: one object without line
// breaks, its fields in the order of the struct, its properties byte for byte.
// It does not allocate when dst has room. Properties must be valid JSON; an
// Event without any is written with {}.
func (e *Event) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"uuid":`...)
	dst = appendString(dst, e.UUID)
	dst = append(dst, `,"project_id":`...)
	dst = strconv.AppendInt(dst, e.ProjectID, 10)
	dst = append(dst, `,"event":`...)
	dst = appendString(dst, e.Name)
	dst = append(dst, `,"distinct_id":`...)
	dst = appendString(dst, e.DistinctID)
	dst = append(dst, `,"timestamp":"`...)
	dst = appendTime(dst, e.Timestamp)
	dst = append(dst, `","received_at":"`...)
	dst = appendTime(dst, e.ReceivedAt)
	dst = append(dst, `","properties":`...)
	if len(e.Properties) == 0 {
		dst = append(dst, `{}`...)
	} else {
		dst = append(dst, e.Properties...)
	}
	if e.ElementsChain != "" {
		dst = append(dst, `,"elements_chain":`...)
		dst = appendString(dst, e.ElementsChain)
	}
	if e.PersonID != "" {
		dst = append(dst, `,"person_id":`...)
		dst = appendString(dst, e.PersonID)
	}
	return append(dst, '}')
}

// appendTime appends t in UTC with six decimals, always, so that the text of
// times sorts like time. It is AppendFormat for this one layout, in a fifth of
// the time.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
	}
	hour, minute, second := t.Clock()
	dst = appendDigits(dst, year, 4)
	dst = appendDigits(append(dst, '-'), int(month), 2)
	dst = appendDigits(append(dst, '-'), day, 2)
	dst = appendDigits(append(dst, 'T'), hour, 2)
	dst = appendDigits(append(dst, ':'), minute, 2)
	dst = appendDigits(append(dst, ':'), second, 2)
	dst = appendDigits(append(dst, '.'), t.Nanosecond()/1000, 6)
	return append(dst, 'Z')
}

// appendDigits appends v with n digits.
func appendDigits(dst []byte, v, n int) []byte {
	var buf [6]byte
	for i := n - 1; i >= 0; i-- {
		buf[i] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, buf[:n]...)
}

// appendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[from:i]...), "\ufffd"...)
			i++
			from = i
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

package web

import "time"

// TimeLayout is how answers print times: microseconds, in UTC.
const TimeLayout = "2006-01-02T15:04:05.000000Z07:00"

// Time is a time in an answer.
type Time time.Time

// MarshalJSON prints the time by TimeLayout, and null for the zero time.
func (t Time) MarshalJSON() ([]byte, error) {
	at := time.Time(t)
	if at.IsZero() {
		return []byte("null"), nil
	}
	return at.UTC().AppendFormat(nil, `"`+TimeLayout+`"`), nil
}

// Instant is a time in an answer that is always known. It prints the zero time,
// which a client may have sent.
type Instant time.Time

// MarshalJSON prints the time by TimeLayout.
func (t Instant) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"`+TimeLayout+`"`), nil
}

// OptionalTime returns t for an answer, null for nil.
func OptionalTime(t *time.Time) Time {
	if t == nil {
		return Time{}
	}
	return Time(*t)
}

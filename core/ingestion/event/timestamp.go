package event

import (
	"math"
	"time"
)

// futureTolerance is how far ahead of the server an event may lie. Time zones
// sent as UTC explain up to 14 hours; a day is a broken clock.
const futureTolerance = 23 * time.Hour

// clockInput is what a request and an event say about time.
type clockInput struct {
	timestamp    string // as sent; empty when missing
	timestampBad bool   // sent, but neither text nor number
	offset       float64
	ignoreSentAt bool
	sentAt       string
	now          time.Time // when the request arrived
}

// clockIssue says that a time could not be used as sent.
type clockIssue struct {
	kind   string
	field  string
	value  string
	reason string
}

// resolveTime decides when an event happened: its timestamp, corrected by how
// far the client's clock was off when it sent the request; else now minus its
// offset; else now. Times that cannot be, become now, with an issue.
func resolveTime(in clockInput) (time.Time, []clockIssue) {
	var issues []clockIssue
	result := in.now
	at, ok := ParseTime(in.timestamp)
	if !ok && (in.timestamp != "" || in.timestampBad) {
		issues = append(issues, clockIssue{KindInvalidTimestamp, "timestamp", in.timestamp, "not a time in a known form"})
	}
	switch {
	case ok:
		result = at
		if in.sentAt != "" && !in.ignoreSentAt {
			sent, ok := ParseTime(in.sentAt)
			if ok {
				// Not Sub: a Duration ends at 292 years, a broken clock does not.
				result = time.UnixMicro(at.UnixMicro() + in.now.UnixMicro() - sent.UnixMicro())
			} else {
				issues = append(issues, clockIssue{KindInvalidTimestamp, "sent_at", in.sentAt, "not a time in a known form"})
			}
		}
	case in.offset != 0:
		result = subtractMillis(in.now, in.offset)
	}
	switch {
	case result.Year() < 0 || result.Year() > 9999:
		issues = append(issues, clockIssue{KindInvalidTimestamp, "timestamp", in.timestamp, "outside the years 0 to 9999"})
		result = in.now
	case result.After(in.now.Add(futureTolerance)):
		issues = append(issues, clockIssue{KindFutureTimestamp, "timestamp", in.timestamp, "more than 23 hours ahead of the server"})
		result = in.now
	}
	return result.UTC().Truncate(time.Microsecond), issues
}

// subtractMillis returns t minus ms milliseconds; what does not fit into a
// time at all comes back as a year outside 0 to 9999.
func subtractMillis(t time.Time, ms float64) time.Time {
	const tenMillennia = 10_000 * 366 * 24 * 3600 * 1000.0
	if math.Abs(ms) > tenMillennia {
		return time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.UnixMicro(t.UnixMicro() - int64(ms*1000)).UTC()
}

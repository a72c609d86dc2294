package event

import (
	"math"
	"time"
)

// futureTolerance bounds how far ahead of the server a timestamp may be. A local
// time sent as UTC is up to 14 hours ahead; a day ahead is a broken clock.
const futureTolerance = 23 * time.Hour

// clockInput holds the times of a request and an event.
type clockInput struct {
	timestamp    string // as sent; empty if missing
	timestampBad bool   // sent, but neither text nor number
	offset       float64
	ignoreSentAt bool
	sentAt       string
	now          time.Time // when the request arrived
}

// clockIssue is a time that was not used as sent.
type clockIssue struct {
	kind   string
	field  string
	value  string
	reason string
}

// resolveTime returns when an event happened: its timestamp, corrected by the error
// of the client's clock at the time of sending; else now minus its offset; else
// now. An impossible time becomes now, with an issue.
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
				// Not Sub: a Duration holds 292 years, and a broken clock may be further off.
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

// subtractMillis returns t minus ms milliseconds. A result beyond the range of
// times has a year outside 0 to 9999.
func subtractMillis(t time.Time, ms float64) time.Time {
	const tenMillennia = 10_000 * 366 * 24 * 3600 * 1000.0
	if math.Abs(ms) > tenMillennia {
		return time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.UnixMicro(t.UnixMicro() - int64(ms*1000)).UTC()
}
